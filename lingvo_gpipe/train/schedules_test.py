"""Tests for schedules."""

from __future__ import annotations

import math

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.train import schedules


def _Exponential(**kwargs):
  return schedules.Exponential.Params().Set(**kwargs)


class SchedulesTest(parameterized.TestCase):
  """Values against the docstrings' formulas, worked out by hand."""

  @parameterized.named_parameters(
    ('constant', schedules.Constant.Params().Set(value=0.5), {0: 0.5, 9: 0.5}),
    (
      'piecewise',
      schedules.PiecewiseConstant.Params().Set(
        boundaries=[10, 20], values=[1.0, 0.1, 0.01]
      ),
      {0: 1.0, 9: 1.0, 10: 0.1, 19: 0.1, 20: 0.01, 10**12: 0.01},
    ),
    (
      'exponential',
      _Exponential(decay_rate=0.5, decay_steps=10),
      {0: 1.0, 5: 0.5**0.5, 10: 0.5, 30: 0.125},
    ),
    (
      'staircase_of_fractional_steps',
      _Exponential(decay_rate=0.5, decay_steps=2.5, staircase=True),
      {0: 1.0, 2: 1.0, 3: 0.5, 4: 0.5, 5: 0.25},
    ),
    (
      'exponential_with_floor',
      _Exponential(decay_rate=0.1, decay_steps=1, minimum=0.05),
      {1: 0.1, 2: 0.05, 10**9: 0.05},
    ),
    (
      'polynomial',
      schedules.Polynomial.Params().Set(decay_steps=10, final=0.2, power=2.0),
      {0: 1.0, 5: 0.2 + 0.8 * 0.25, 10: 0.2, 99: 0.2},
    ),
    (
      'cosine',
      schedules.Cosine.Params().Set(decay_steps=100, final=0.1),
      {
        0: 1.0,
        25: 0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2,
        50: 0.55,
        100: 0.1,
        1000: 0.1,
      },
    ),
    (
      'transformer',
      schedules.Transformer.Params().Set(model_dim=16, warmup_steps=4),
      {0: 0.25 / 8, 1: 0.25 * 2 / 8, 3: 0.25 * 0.5, 99: 0.25 * 0.1},
    ),
    (
      'ramp_then_decay_of_all_steps',
      schedules.LinearRampup.Params().Set(
        warmup_steps=4, schedule=_Exponential(decay_rate=0.5, decay_steps=2)
      ),
      {0: 0.0, 1: 0.25, 3: 0.75, 4: 0.25, 6: 0.125},
    ),
    (
      'ramp_then_delayed_decay',
      schedules.LinearRampup.Params().Set(
        warmup_steps=4,
        initial=0.2,
        delay_schedule=True,
        schedule=_Exponential(decay_rate=0.5, decay_steps=2),
      ),
      {0: 0.2, 2: 0.6, 4: 1.0, 6: 0.5},
    ),
    (
      'no_ramp',
      schedules.LinearRampup.Params().Set(
        schedule=_Exponential(decay_rate=0.5, decay_steps=1)
      ),
      {0: 1.0, 1: 0.5},
    ),
    (
      'minimum',
      schedules.Minimum.Params().Set(
        schedules=[
          schedules.Constant.Params().Set(value=0.3),
          _Exponential(decay_rate=0.5, decay_steps=1),
        ]
      ),
      {0: 0.3, 1: 0.3, 2: 0.25},
    ),
  )
  def testValues(self, params, expected):
    schedule = params.Instantiate()
    in_graph = tf.function(schedule.Value, reduce_retracing=True)
    for step, value in expected.items():
      tensor = schedule.Value(step)
      self.assertEqual(tensor.dtype, tf.float64)
      self.assertEqual(tensor.shape, [])
      self.assertAlmostEqual(float(tensor), value, delta=1e-14)
      tensor = in_graph(tf.constant(step, tf.int64))
      self.assertAlmostEqual(float(tensor), value, delta=1e-14)

  def testStepMayBeAVariable(self):
    step = tf.Variable(3, dtype=tf.int64)
    schedule = _Exponential(decay_rate=0.5, decay_steps=1).Instantiate()
    self.assertAlmostEqual(float(schedule.Value(step)), 0.125)

  def testStepsBeyondFloat32(self):
    boundary = 2**24 + 1  # The first integer that float32 lacks.
    schedule = (
      schedules.PiecewiseConstant.Params()
      .Set(boundaries=[boundary], values=[1.0, 2.0])
      .Instantiate()
    )
    for step in (boundary - 1, boundary):
      expected = 2.0 if step == boundary else 1.0
      self.assertEqual(float(schedule.Value(step)), expected)
      self.assertEqual(
        float(schedule.Value(tf.constant(step, tf.int64))), expected
      )

  def testAmoebaNetRecipe(self):
    """Real et al. by tensorflow/tpu: 0.97 per 2.4 epochs, 3 epochs of ramp."""
    epoch = 5004
    schedule = (
      schedules.LinearRampup.Params()
      .Set(
        warmup_steps=3 * epoch,
        schedule=_Exponential(
          decay_rate=0.97, decay_steps=2.4 * epoch, staircase=True, minimum=1e-4
        ),
      )
      .Instantiate()
    )
    self.assertAlmostEqual(float(schedule.Value(epoch)), 1 / 3)
    self.assertAlmostEqual(float(schedule.Value(3 * epoch)), 0.97)
    self.assertAlmostEqual(float(schedule.Value(100 * epoch)), 0.97**41)

  @parameterized.named_parameters(
    (
      'too_few_values',
      schedules.PiecewiseConstant.Params().Set(boundaries=[1, 2]),
      '1 values for 2 boundaries; give 3 values',
    ),
    (
      'boundaries_out_of_order',
      schedules.PiecewiseConstant.Params().Set(
        boundaries=[2, 1], values=[1.0, 1.0, 1.0]
      ),
      'must increase',
    ),
    (
      'no_decay_steps',
      _Exponential(decay_steps=0),
      'Exponential: decay_steps=0 must be positive',
    ),
    (
      'negative_ramp',
      schedules.LinearRampup.Params().Set(warmup_steps=-1),
      'warmup_steps=-1 is negative',
    ),
    ('nothing_to_combine', schedules.Minimum.Params(), 'at least one'),
  )
  def testBadParams(self, params, message):
    with self.assertRaisesRegex(ValueError, message):
      params.Instantiate()


class FillDecayStepsTest(absltest.TestCase):
  def testFillsWhatIsNotSet(self):
    params = schedules.LinearRampup.Params().Set(
      warmup_steps=2, schedule=schedules.Cosine.Params()
    )
    with self.assertRaisesRegex(ValueError, 'Cosine: decay_steps is not set'):
      params.Instantiate()
    schedules.FillDecaySteps(params, 10)
    self.assertEqual(params.schedule.decay_steps, 10)
    schedules.FillDecaySteps(params, 20)
    self.assertEqual(params.schedule.decay_steps, 10)
    self.assertAlmostEqual(float(params.Instantiate().Value(10)), 0.0)


if __name__ == '__main__':
  absltest.main()
