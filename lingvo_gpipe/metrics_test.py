"""Tests of metrics."""

import tensorflow as tf

from lingvo_gpipe import metrics


class MetricsTest(tf.test.TestCase):
  def testSumsOfUnequalPartsGiveTheMeanOfTheWhole(self):
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    weights = tf.constant([1.0, 1.0, 1.0, 0.0])
    whole = metrics.Weighted(values, weights)
    parts = [
      metrics.Weighted(values[:1], weights[:1]),
      metrics.Weighted(values[1:], weights[1:]),
    ]
    summed = tf.nest.map_structure(lambda a, b: a + b, *parts)
    self.assertAllClose(whole.Mean(), 2.0)
    self.assertAllClose(summed.Mean(), 2.0)

  def testNoWeightIsZeroAndNotNan(self):
    none = metrics.Weighted(tf.constant([5.0]), tf.constant([0.0]))
    self.assertAllEqual(none.Mean(), 0.0)

  def testIntegerWeightsAreCast(self):
    summed = metrics.Weighted(tf.constant([1.0, 3.0]), tf.constant([1, 1]))
    self.assertEqual(summed.weight.dtype, tf.float32)
    self.assertAllClose(summed.Mean(), 2.0)

  def testScalarAveragesOverMicroBatches(self):
    a, b = metrics.Scalar(tf.constant(1.0)), metrics.Scalar(tf.constant(3.0))
    summed = tf.nest.map_structure(lambda x, y: x + y, a, b)
    self.assertAllClose(summed.Mean(), 2.0)


if __name__ == '__main__':
  tf.test.main()
