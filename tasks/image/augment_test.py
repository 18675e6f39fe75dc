"""Tests of augment."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import augment


def _Images(batch=2, height=5, width=4):
  size = batch * height * width
  values = tf.random.stateless_uniform([size], (1, 2))
  return tf.reshape(values, [batch, height, width, 1])


def _Affine(images, matrix, shift):
  batch = images.shape[0]
  return augment.Affine(
    images,
    tf.tile(tf.constant([matrix], tf.float32), [batch, 1, 1]),
    tf.tile(tf.constant([shift], tf.float32), [batch, 1]),
  ).numpy()


class AugmentTest(tf.test.TestCase, parameterized.TestCase):
  def testIdentity(self):
    images = _Images()
    outputs = _Affine(images, [[1, 0], [0, 1]], [0, 0])
    self.assertAllClose(outputs, images)

  def testShift(self):
    images = _Images().numpy()
    # One pixel from the right, two from below.
    outputs = _Affine(tf.constant(images), [[1, 0], [0, 1]], [1, 2])
    expected = np.zeros_like(images)
    expected[:, :-2, :-1] = images[:, 2:, 1:]
    self.assertAllClose(outputs, expected)

  def testFillAndNearest(self):
    images = tf.cast(100.0 * _Images(), tf.uint8)
    outputs = augment.Affine(
      images,
      tf.tile(tf.eye(2)[tf.newaxis], [2, 1, 1]),
      tf.tile(tf.constant([[0.7, 0.0]]), [2, 1]),
      fill=200.0,
      interpolation='NEAREST',
    )
    expected = np.full_like(images.numpy(), 200)
    expected[:, :, :-1] = images[:, :, 1:]
    self.assertAllEqual(outputs, expected)

  def testRotationIsAroundTheCentre(self):
    images = _Images(height=5, width=5).numpy()
    # The output at (x, y) is the input at (-y, x).
    outputs = _Affine(tf.constant(images), [[0, -1], [1, 0]], [0, 0])
    self.assertAllClose(outputs, np.rot90(images, -1, axes=(2, 1)), atol=1e-5)

  def testZoomKeepsTheCentre(self):
    images = _Images(height=5, width=5)
    outputs = _Affine(images, [[0.5, 0], [0, 0.5]], [0, 0])
    self.assertAllClose(outputs[:, 2, 2], images[:, 2, 2])
    self.assertAllClose(outputs[:, 0, 0], images[:, 1, 1])
    self.assertAllClose(
      outputs[:, 2, 3], (images[:, 2, 2] + images[:, 2, 3]) / 2
    )

  def testRandomAffineIsAFunctionOfTheSeed(self):
    images = _Images(batch=6)
    ranges = {'max_rotation': 10.0, 'max_zoom': 0.1, 'max_shift': 1.0}
    first = augment.RandomAffine(images, (1, 2), **ranges)
    self.assertAllEqual(first, augment.RandomAffine(images, (1, 2), **ranges))
    self.assertNotAllClose(
      first, augment.RandomAffine(images, (1, 3), **ranges)
    )
    same = tf.tile(images[:1], [6, 1, 1, 1])
    outputs = augment.RandomAffine(same, (1, 2), **ranges)
    self.assertNotAllClose(outputs[0], outputs[1])

  def testRandomAffineWithoutRangesIsTheIdentity(self):
    images = _Images()
    self.assertAllClose(augment.RandomAffine(images, (1, 2)), images, atol=1e-6)

  def testShiftIsUniformInItsRange(self):
    # A ramp to the right: how far it moved is what the values changed by.
    row = tf.range(41, dtype=tf.float32)
    images = tf.tile(
      row[tf.newaxis, tf.newaxis, :, tf.newaxis], [500, 41, 1, 1]
    )
    outputs = augment.RandomAffine(images, (1, 2), max_shift=3.0)
    shifts = (outputs - images)[:, 20, 20, 0].numpy()
    self.assertBetween(shifts.max(), 2.9, 3.0)
    self.assertBetween(shifts.min(), -3.0, -2.9)
    self.assertAllClose(shifts.mean(), 0.0, atol=0.3)
    self.assertAllClose(shifts.var(), 3.0, atol=0.5)

  def testRotationStaysInItsRange(self):
    # A small rotation moves a ramp to the right by its sine a pixel down.
    row = tf.range(41, dtype=tf.float32)
    images = tf.tile(
      row[tf.newaxis, tf.newaxis, :, tf.newaxis], [500, 41, 1, 1]
    )
    outputs = augment.RandomAffine(images, (1, 2), max_rotation=10.0)
    sines = (outputs[:, 21, 20] - outputs[:, 20, 20]).numpy()
    largest = np.sin(np.deg2rad(10.0))
    self.assertBetween(np.abs(sines).max(), 0.97 * largest, 1.001 * largest)


if __name__ == '__main__':
  tf.test.main()
