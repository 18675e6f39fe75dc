"""Tests of progress."""

from absl.testing import absltest, parameterized

from lingvo_gpipe.jobs import progress


class _Clock:
  """Seconds that pass only by Pass()."""

  def __init__(self):
    self.seconds = 100.0

  def __call__(self):
    return self.seconds

  def Pass(self, seconds):
    self.seconds += seconds


class ProgressTest(parameterized.TestCase):
  def testValues(self):
    self.assertEqual(
      progress.Values({'loss': 0.25, 'accuracy': 1}),
      'loss 0.2500 accuracy 1.0000',
    )
    self.assertEqual(progress.Values({}), '')

  @parameterized.parameters(
    (-3, '0s'),
    (0.4, '0s'),
    (59.4, '59s'),
    (59.6, '1m00s'),
    (62, '1m02s'),
    (3600, '1h00m'),
    (11265, '3h07m'),
    (188000, '2d04h'),
  )
  def testDuration(self, seconds, text):
    self.assertEqual(progress.Duration(seconds), text)

  @parameterized.parameters(
    (0.34118, '0.3412'),
    (0.0, '0.0000'),
    (12.0, '12.0000'),
    (0.00012345, '0.0001234'),
    (2.5e9, '2.5e+09'),
    (float('nan'), 'nan'),
  )
  def testNumber(self, value, text):
    self.assertEqual(progress.Number(value), text)

  def testLine(self):
    line = progress.Line(
      120,
      600,
      {'loss': 0.34118, 'accuracy': 0.8911},
      learning_rate=0.05,
      per_second=811.7,
      input_wait=0.031,
      seconds_left=62.3,
    )
    self.assertEqual(
      line,
      'step 120/600 loss 0.3412 accuracy 0.8911 lr 0.05 812 examples/s '
      'input wait 3% ETA 1m02s',
    )
    self.assertEqual(
      line.values,
      {
        'step': 120,
        'max_steps': 600,
        'loss': 0.34118,
        'accuracy': 0.8911,
        'learning_rate': 0.05,
        'examples_per_second': 811.7,
        'input_wait': 0.031,
        'seconds_left': 62.3,
        'skipped_steps': 0,
      },
    )

  def testLineBeforeAnythingIsMeasured(self):
    line = progress.Line(
      1,
      9,
      {'loss': 2.0},
      learning_rate=1e-7,
      per_second=None,
      input_wait=None,
      seconds_left=None,
      skipped=1,
      num_steps=2,
    )
    self.assertEqual(
      line,
      'step 1/9 loss 2.0000 lr 1e-07 (1 of 2 steps skipped: not finite)',
    )
    self.assertNotIn('seconds_left', line.values)

  @parameterized.parameters((9.999, '10'), (0.5234, '0.523'), (1234.5, '1234'))
  def testRate(self, value, text):
    self.assertEqual(progress.Rate(value), text)


class StepClockTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._clock = _Clock()
    self._steps = progress.StepClock(self._clock)

  def _Step(self, wait, compute):
    with self._steps.WaitingForInput():
      self._clock.Pass(wait)
    with self._steps.Computing():
      self._clock.Pass(compute)

  def testIntervals(self):
    self._Step(10, 60)  # builds the graph
    self.assertEqual(self._steps.first_step_seconds, 70)
    self.assertIsNone(self._steps.Interval())
    self._Step(0.5, 1.5)
    self.assertEqual(self._steps.Interval(), (0.5, 0.25))
    self._Step(0.0, 0.25)
    self._Step(0.25, 0.5)
    self._clock.Pass(1000)  # a checkpoint
    self.assertEqual(self._steps.Interval(), (2.0, 0.25))
    self.assertIsNone(self._steps.Interval())
    self.assertEqual(self._steps.steps, 3)
    self.assertEqual(self._steps.busy_seconds, 3.0)
    self.assertEqual(self._steps.wait_seconds, 0.75)

  def testTimeLeftLeavesOutTheFirstStepAndCountsAllElse(self):
    self._Step(0, 60)
    self.assertIsNone(self._steps.SecondsLeft(10))
    self._Step(0, 1)
    self._Step(0, 1)
    self._clock.Pass(2)  # an evaluation
    self.assertEqual(self._steps.SecondsLeft(10), 20.0)
    self.assertIsNone(self._steps.SecondsLeft(0))


if __name__ == '__main__':
  absltest.main()
