"""Tests of recorder."""

import os

import numpy as np
from absl.testing import absltest

from lingvo_gpipe import hyperparams, metrics, nested_map, user_error
from lingvo_gpipe.jobs import progress, recorder, step_log

_BATCH_SIZE = 8


def _Params(**kwargs):
  p = hyperparams.Params()
  p.Define('max_steps', 7, '')
  p.Define('log_interval_steps', 3, '')
  p.Define('summary_interval_steps', 2, '')
  p.Define('max_nonfinite_steps', 4, '')
  p.Define('nonfinite', 'skip', '')
  return p.Set(**kwargs)


class _Scalar:
  """A tensor that tells when it is read."""

  def __init__(self, value, reads):
    self._value, self._reads = value, reads

  def __float__(self):
    self._reads.append(self._value)
    return float(self._value)


class RecorderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    logdir = self.create_tempdir().full_path
    self._path = os.path.join(logdir, 'metrics.jsonl')
    self._device_path = os.path.join(logdir, 'devices.jsonl')
    self._lines, self._summaries, self._reads = [], [], []
    self._seconds = 0.0
    self._clock = progress.StepClock(lambda: self._seconds)

  def _Recorder(self, unit='examples', measure=None, **kwargs):
    return recorder.Recorder(
      _Params(**kwargs),
      batch_size=_BATCH_SIZE,
      unit=unit,
      clock=self._clock,
      log=step_log.StepLog(self._path, 0),
      device_log=step_log.StepLog(self._device_path, 0),
      write_summary=lambda step, values: self._summaries.append((step, values)),
      show=self._lines.append,
      measure=measure,
    )

  def _Add(
    self, rec, step, loss=None, skipped=False, correct=2.0, cell_metrics=None
  ):
    with self._clock.WaitingForInput():
      self._seconds += 0.25
    with self._clock.Computing():
      self._seconds += 0.75
    weighted = metrics.WeightedSum
    outputs = nested_map.NestedMap(
      loss=_Scalar(step if loss is None else loss, self._reads),
      metrics=nested_map.NestedMap(
        loss=weighted(99.0, 8.0), accuracy=weighted(correct, 8.0)
      ),
      aux_losses={'net/size': 0.5},
      cell_metrics={k: weighted(*v) for k, v in (cell_metrics or {}).items()},
      learning_rate=0.1,
      grad_norm=2.0,
      partition_grad_norms=np.array([step, float('nan') if skipped else 1.5]),
      times=f'times of {step}',
      update_skipped=skipped,
    )
    rec.Add(step, outputs)

  def testTokens(self):
    rec = self._Recorder(unit='tokens')
    for step in range(1, 4):
      self._Add(rec, step)
    # A loss weighs 8, in a step of one second.
    self.assertRegex(self._lines[-1], r' 8(\.\d+)? tokens/s ')
    names = {name for _, values in self._summaries for name in values}
    self.assertIn('tokens_per_second', names)
    self.assertNotIn('examples_per_second', names)

  def testLines(self):
    rec = self._Recorder()
    for step in range(1, 8):
      self._Add(rec, step, correct=step)
    self.assertEqual(
      self._lines,
      [
        'first step done in 1.0 s, most of it to build the graph',
        'step 3/7 loss 2.0000 accuracy 0.2500 lr 0.1 8 examples/s '
        'input wait 25% ETA 4s',
        'step 6/7 loss 5.0000 accuracy 0.6250 lr 0.1 8 examples/s '
        'input wait 25% ETA 1s',
        # The last step has a line whatever the interval.
        'step 7/7 loss 7.0000 accuracy 0.8750 lr 0.1 8 examples/s '
        'input wait 25%',
      ],
    )

  def testReadsOnlyWhenALineIsDue(self):
    rec = self._Recorder()
    self._Add(rec, 1)
    self._Add(rec, 2)
    self.assertEmpty(self._reads)
    self._Add(rec, 3)
    self.assertEqual(self._reads, [1, 2, 3])

  def testLogHasEveryStepOnce(self):
    rec = self._Recorder()
    for step in range(1, 6):
      self._Add(rec, step, loss=float('inf') if step == 2 else None)
    rec.Flush()  # As before a checkpoint.
    rec.Flush()
    self._Add(rec, 6)
    records = step_log.Read(self._path)
    self.assertEqual([r['step'] for r in records], [1, 2, 3, 4, 5, 6])
    self.assertEqual([r['loss'] for r in records], [1, None, 3, 4, 5, 6])
    self.assertEqual(
      records[0],
      {
        'step': 1,
        'loss': 1,
        'accuracy': 0.25,
        'aux_loss/net/size': 0.5,
        'learning_rate': 0.1,
        'grad_norm': 2.0,
        'skipped': False,
      },
    )
    # The line of step 6 still is a mean over steps 4, 5 and 6.
    self.assertStartsWith(self._lines[-1], 'step 6/7 loss 5.0000')

  def testSummaries(self):
    rec = self._Recorder()
    for step in range(1, 5):
      self._Add(rec, step)
    rec.Flush()
    values = {step: v for step, v in self._summaries if 'loss' in v}
    self.assertEqual(list(values), [2, 4])
    self.assertEqual(values[4]['loss'], 4)
    self.assertEqual(
      {
        'loss',
        'accuracy',
        'learning_rate',
        'grad_norm',
        'grad_norm/partition_0',
        'grad_norm/partition_1',
        'aux_loss/net/size',
      },
      set(values[4]),
    )
    self.assertEqual(values[4]['grad_norm/partition_0'], 4.0)
    rates = [(step, v) for step, v in self._summaries if 'loss' not in v]
    self.assertEqual(
      rates, [(3, {'examples_per_second': 8.0, 'input_wait': 0.25})]
    )

  def testPartitionsAndDevicesHaveALogOfTheirOwn(self):
    measured = []

    def _Measure(times):
      measured.append(times)
      return {'bubble': 0.25, 'memory_mib/trainer': 100.0 * len(measured)}

    rec = self._Recorder(measure=_Measure)
    for step in range(1, 8):
      self._Add(rec, step, skipped=step == 5)
    # Once a line of progress, not in each step.
    self.assertEqual(measured, ['times of 3', 'times of 6', 'times of 7'])
    records = step_log.Read(self._device_path)
    self.assertEqual([r['step'] for r in records], [1, 2, 3, 4, 5, 6, 7])
    self.assertEqual(
      records[1],
      {'step': 2, 'grad_norm/partition_0': 2.0, 'grad_norm/partition_1': 1.5},
    )
    self.assertIsNone(records[4]['grad_norm/partition_1'])
    self.assertEqual(
      {r['step']: r['memory_mib/trainer'] for r in records if 'bubble' in r},
      {3: 100.0, 6: 200.0, 7: 300.0},
    )
    summaries = {step: v for step, v in self._summaries if 'bubble' in v}
    self.assertEqual(set(summaries), {3, 6, 7})
    self.assertEqual(summaries[6]['memory_mib/trainer'], 200.0)
    # The other log does not depend on them.
    for record in step_log.Read(self._path):
      self.assertNoCommonElements(
        record, {'bubble', 'memory_mib/trainer', 'grad_norm/partition_0'}
      )

  def testCellMetrics(self):
    rec = self._Recorder()
    name = 'task/net/moe/dropped'
    # Steps weigh as much as they hold; one that is skipped not at all.
    self._Add(rec, 1, cell_metrics={name: (3.0, 4.0)})
    self._Add(rec, 2, cell_metrics={name: (2.0, 16.0)})
    nan = float('nan')
    self._Add(rec, 3, cell_metrics={name: (nan, 9.0)}, skipped=True)
    self.assertIn(f' accuracy 0.2500 {name} 0.2500 lr ', self._lines[-1])
    self._Add(rec, 4, cell_metrics={name: (0.0, 0.0)})
    rec.Flush()
    records = step_log.Read(self._path)
    shown = f'cell_metric/{name}'
    self.assertEqual([r[shown] for r in records[:3]], [0.75, 0.125, None])
    self.assertNotIn(shown, records[3])  # It had no weight.
    summaries = {step: v for step, v in self._summaries if 'loss' in v}
    self.assertEqual(summaries[2][shown], 0.125)
    self.assertNotIn(shown, summaries[4])

  def testManyCellMetricsStayOutOfTheLine(self):
    rec = self._Recorder()
    many = {f'task/net/cell_{i}/load': (i, 1.0) for i in range(5)}
    for step in range(1, 4):
      self._Add(rec, step, cell_metrics=many)
    self.assertNotIn('load', self._lines[-1])
    self.assertEqual(
      step_log.Read(self._path)[0]['cell_metric/task/net/cell_4/load'], 4.0
    )

  def testNoSummaries(self):
    rec = self._Recorder(
      measure=lambda unused_times: {'bubble': 0.5}, summary_interval_steps=0
    )
    for step in range(1, 5):
      self._Add(rec, step)
    self.assertEmpty(self._summaries)

  def testSkippedStepsAreLeftOutOfMeans(self):
    rec = self._Recorder()
    self._Add(rec, 1, loss=float('nan'), skipped=True)
    self._Add(rec, 2)
    self._Add(rec, 3)
    self.assertStartsWith(self._lines[-1], 'step 3/7 loss 2.5000 ')
    self.assertEndsWith(self._lines[-1], '(1 of 3 steps skipped: not finite)')

  def testGivesUpAfterTooManySkippedStepsInARow(self):
    rec = self._Recorder(max_steps=100)
    skipped = [1, 2, 3, 5, 6, 7, 8]
    for step in range(1, 9):
      self._Add(rec, step, skipped=step in skipped)
    with self.assertRaisesRegex(
      user_error.TrainingError,
      '^the last 5 steps .* diverged; .*learning_rate',
    ):
      self._Add(rec, 9, skipped=True)
    self.assertLen(step_log.Read(self._path), 9)
    self.assertStartsWith(self._lines[-1], 'step 9/100 loss nan')


if __name__ == '__main__':
  absltest.main()
