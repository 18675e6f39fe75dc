"""Tests of flip."""

import numpy as np
import tensorflow as tf

from tasks.image import flip


def _Flip(image, index, **kwargs):
  transform = flip.RandomFlip.Params().Set(**kwargs).Instantiate()
  return transform.Apply(image, tf.constant([3, index], tf.int64)).numpy()


class FlipTest(tf.test.TestCase):
  def testEitherOrHalfOfTheTime(self):
    image = tf.reshape(tf.range(24.0), [2, 4, 3])
    mirrored = image.numpy()[:, ::-1]
    flipped = 0
    for i in range(200):
      output = _Flip(image, i)
      is_flipped = np.array_equal(output, mirrored)
      self.assertTrue(is_flipped or np.array_equal(output, image))
      flipped += is_flipped
    self.assertBetween(flipped, 75, 125)  # Standard deviation 7.

  def testProbability(self):
    image = tf.reshape(tf.range(24.0), [2, 4, 3])
    for i in range(20):
      self.assertAllEqual(_Flip(image, i, probability=0.0), image)
      self.assertAllEqual(_Flip(image, i, probability=1.0), image[:, ::-1])


if __name__ == '__main__':
  tf.test.main()
