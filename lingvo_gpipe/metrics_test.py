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

  def testIntegersAndHalfPrecisionAreSummedInFloat32(self):
    # bfloat16 could not count beyond 256.
    ones = tf.ones([600], tf.bfloat16)
    summed = metrics.Weighted(ones, ones)
    self.assertAllEqual(summed.weight, 600.0)
    summed = metrics.Weighted(tf.constant([1, 2]), tf.constant([0.5, 0.5]))
    self.assertAllClose(summed.total, 1.5)
    summed = metrics.Weighted(tf.constant([1.0, 3.0]), tf.constant([1, 1]))
    self.assertAllClose(summed.Mean(), 2.0)

  def testFloat64Stays(self):
    summed = metrics.Weighted(tf.ones([2], tf.float64), tf.ones([2]))
    self.assertEqual(summed.weight.dtype, tf.float64)


if __name__ == '__main__':
  tf.test.main()
