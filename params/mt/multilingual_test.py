"""Tests of multilingual: the paper's sizes and partitions, without data."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import registry
from lingvo_gpipe.gpipe import placement
from params.mt import multilingual


def setUpModule():
  placement.ConfigureLogicalCpus(16)


class MultilingualTest(parameterized.TestCase):
  @parameterized.parameters(
    # Section 5 says 0.4, 1.3, 1.3, 3, 6 and 0.35 billions. With one table for
    # both languages and a softmax of its own the formula gives these:
    ('T6x8192x16', 408e6, 2),
    ('T24x8192x16', 1.239e9, 4),
    ('T12x16384x32', 1.239e9, 2),
    ('T32x16384x32', 3.086e9, 8),
    ('T64x16384x32', 6.041e9, 16),
    ('TransformerBig', 343e6, 1),
  )
  def testSizes(self, name, expected, num_partitions):
    params = registry.GetParams(f'mt.multilingual.{name}', 'Train')
    net = params.net
    self.assertEqual(net.num_partitions, num_partitions)
    cls = getattr(multilingual, name)
    self.assertLen(net.cells, 2 * cls.NUM_LAYERS + 3)
    task = params.Instantiate()
    count = sum(s.size for s in tf.nest.flatten(task.VariableSpecs()))
    self.assertAlmostEqual(count / expected, 1.0, delta=2e-3)

  def testCountIsThatOfTheFormula(self):
    params = registry.GetParams('mt.multilingual.T12x16384x32', 'Train')
    specs = tf.nest.flatten(params.Instantiate().VariableSpecs())
    d, width, hidden, vocab = 1024, 2048, 16_384, 64_000
    attention = 4 * d * width + 3 * width + d
    feed_forward = 2 * d * hidden + hidden + d
    norm = 2 * d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    tables = 2 * vocab * d + vocab
    self.assertEqual(
      sum(s.size for s in specs), 12 * (encoder + decoder) + tables + 2 * norm
    )

  def testMiniBatchesSplit(self):
    params = registry.GetParams('mt.multilingual.T64x16384x32', 'Train')
    for spec in params.input.Instantiate().BatchSpecs():
      rows, length = spec.inputs.shape
      self.assertEqual(rows % params.net.num_micro_batches, 0)
      self.assertLessEqual(rows * length, 262_144)

  def testLargestModelIsPlannedInSeconds(self):
    params = registry.GetParams('mt.multilingual.T64x16384x32', 'Train')
    task = params.Instantiate()
    spec = params.input.Instantiate().BatchSpec()
    plan = task.Plan(spec, [f'/cpu:{i}' for i in range(16)])
    self.assertLen(plan.stages, 16)
    self.assertGreater(plan.balance, 0.85)

  def testLearningRate(self):
    learner = (
      registry.GetParams('mt.multilingual.T6x8192x16', 'Train')
      .Instantiate()
      .learner
    )
    peak = learner.lr_schedule.Value(39_999) * learner.params.learning_rate
    self.assertAlmostEqual(float(peak), 3.0 / 200.0, places=6)


if __name__ == '__main__':
  absltest.main()
