"""Tests for division."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import division


class DivisionTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters((12, 2, 3), (10, 2, 2), (9, 4, 2), (5, 1, 3))
  def testReplicasTogetherAreOnePipeline(self, batch_size, r, m):
    batch = nested_map.NestedMap(
      x=tf.range(2 * batch_size), weights=tf.ones([2 * batch_size, 3]), n=None
    )
    batch.x, batch.weights = batch.x[:batch_size], batch.weights[:batch_size]
    one = division.Division(batch_size, 1, r * m)
    many = division.Division(batch_size, r, m)
    self.assertEqual(many.micro_batch_size, one.micro_batch_size)
    self.assertEqual(many.padded_from, one.padded_from)
    self.assertEqual(many.MicroSpecs(batch), one.MicroSpecs(batch))

    def _Divided(of):
      x, weights = [], []
      for replica in range(of.num_replicas):
        split = of.Split(of.Rows(batch, replica))
        self.assertIsNone(split.n)
        x.append(split.x)
        weights.append(of.Weighed(split.weights, replica))
      return tf.concat(x, 0), tf.concat(weights, 0)

    for of_many, of_one in zip(_Divided(many), _Divided(one), strict=True):
      self.assertAllEqual(of_many, of_one)
    self.assertAllEqual(
      tf.reshape(_Divided(many)[0], [-1])[:batch_size], batch.x
    )
    self.assertAllEqual(tf.reduce_sum(_Divided(many)[1]), 3 * batch_size)


if __name__ == '__main__':
  tf.test.main()
