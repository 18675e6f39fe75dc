"""Tests of color_jitter."""

import colorsys

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import color_jitter, image_transform

_OFF = {'brightness': 0.0, 'saturation': 0.0, 'hue': 0.0, 'contrast': 0.0}


def _Image():
  return tf.random.stateless_uniform([6, 5, 3], (1, 2), 90.0, 160.0)


def _Jitter(image, index, **kwargs):
  params = color_jitter.ColorJitter.Params().Set(**{**_OFF, **kwargs})
  return params.Instantiate().Apply(image, _Seed(index)).numpy()


def _Seed(index):
  return tf.constant([3, index], tf.int64)


def _Draw(index, which):
  """Of -1 to 1: how much of the range of a kind is drawn."""
  return float(image_transform.Uniform(_Seed(index), *[(-1.0, 1.0)] * 4)[which])


def _Hsv(image):
  pixels = np.asarray(image).reshape(-1, 3) / 255.0
  return np.array([colorsys.rgb_to_hsv(*x) for x in pixels])


class ColorJitterTest(tf.test.TestCase, parameterized.TestCase):
  def testOff(self):
    self.assertAllClose(_Jitter(_Image(), 0), _Image(), atol=1e-4)

  @parameterized.parameters(0, 1, 2)
  def testBrightness(self, index):
    output = _Jitter(_Image(), index, brightness=0.3)
    expected = _Image() + 0.3 * 255.0 * _Draw(index, 0)
    self.assertAllClose(output, expected, atol=1e-3)

  @parameterized.parameters(0, 1, 2)
  def testSaturation(self, index):
    before = _Hsv(_Image())
    after = _Hsv(_Jitter(_Image(), index, saturation=0.5))
    self.assertAllClose(after[:, [0, 2]], before[:, [0, 2]], atol=1e-4)
    factor = 1.0 + 0.5 * _Draw(index, 1)
    self.assertAllClose(after[:, 1], factor * before[:, 1], atol=1e-4)

  @parameterized.parameters(0, 1, 2)
  def testHue(self, index):
    before = _Hsv(_Image())
    after = _Hsv(_Jitter(_Image(), index, hue=0.2))
    self.assertAllClose(after[:, 1:], before[:, 1:], atol=1e-4)
    turn = (after[:, 0] - before[:, 0] - 0.2 * _Draw(index, 2)) % 1.0
    self.assertAllClose(np.minimum(turn, 1.0 - turn), np.zeros(30), atol=1e-4)

  @parameterized.parameters(0, 1, 2)
  def testContrast(self, index):
    image = _Image().numpy()
    output = _Jitter(_Image(), index, contrast=0.5)
    mean = image.mean((0, 1))
    expected = mean + (1.0 + 0.5 * _Draw(index, 3)) * (image - mean)
    self.assertAllClose(output, expected, atol=1e-3)

  def testStaysInRange(self):
    image = tf.cast(tf.random.stateless_uniform([9, 9, 3], (1, 2)) > 0.5, float)
    for i in range(10):
      output = _Jitter(255.0 * image, i, brightness=1.0, contrast=1.0)
      self.assertAllInRange(output, 0.0, 255.0)

  def testErrors(self):
    for name in _OFF:
      with self.assertRaisesRegex(ValueError, f'{name}=1.5 must be from 0 to'):
        _Jitter(_Image(), 0, **{name: 1.5})


if __name__ == '__main__':
  tf.test.main()
