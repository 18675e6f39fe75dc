"""Tests of image_ops: against PIL's rules, written out in NumPy."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import image_ops


def _Image(height=7, width=9, low=0, high=256, seed=1):
  values = tf.random.stateless_uniform(
    [height, width, 3], (seed, 2), low, high, tf.int32
  )
  return values.numpy().astype(np.uint8)


def _Apply(name, image, value=0.0):
  operation = image_ops.OPERATIONS[name]
  output = operation(tf.constant(image), tf.constant(value, tf.float32))
  assert output.dtype == tf.uint8
  return output.numpy()


def _Moved(image, source):
  """The image whose pixel (y, x) is that at source(y, x), or grey."""
  height, width, _ = image.shape
  output = np.full_like(image, 128)
  for y in range(height):
    for x in range(width):
      i, j = source(y, x)
      if 0 <= i < height and 0 <= j < width:
        output[y, x] = image[i, j]
  return output


def _Grey(image):
  red, green, blue = np.moveaxis(image.astype(np.int64), -1, 0)
  return (299 * red + 587 * green + 114 * blue + 500) // 1000


def _Blend(degenerate, image, factor):
  mixed = degenerate + factor * (image.astype(np.float64) - degenerate)
  return np.clip(mixed, 0, 255)


class ImageOpsTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(1.0, 0.3, -0.2, -1.0)
  def testShear(self, value):
    image = _Image()

    def _Move(place, along):
      return int(np.floor(place + 0.5 + value * (along + 0.5)))

    # Of a whole shear the new places lie on borders of two pixels.
    value -= 1e-4
    self.assertAllEqual(
      _Apply('ShearX', image, value),
      _Moved(image, lambda y, x: (y, _Move(x, y))),
    )
    self.assertAllEqual(
      _Apply('ShearY', image, value),
      _Moved(image, lambda y, x: (_Move(y, x), x)),
    )

  def testTranslate(self):
    image = _Image()
    for value, move in ((2 / 9, 2), (-3 / 9, -3), (0.0, 0)):
      self.assertAllEqual(
        _Apply('TranslateX', image, value),
        _Moved(image, lambda y, x, move=move: (y, x + move)),
      )
    self.assertAllEqual(
      _Apply('TranslateY', image, 2 / 7),
      _Moved(image, lambda y, x: (y + 2, x)),
    )

  def testRotate(self):
    image = _Image(7, 7)
    self.assertAllEqual(_Apply('Rotate', image, 90.0), np.rot90(image))
    self.assertAllEqual(_Apply('Rotate', image, -90.0), np.rot90(image, -1))
    self.assertAllEqual(_Apply('Rotate', image, 0.0), image)
    # What turns by little keeps its centre and loses its corners.
    output = _Apply('Rotate', image, 20.0)
    self.assertAllEqual(output[3, 3], image[3, 3])
    self.assertAllEqual(output[0, 0], [128] * 3)

  def testAutoContrast(self):
    image = _Image(low=40, high=200)
    image[..., 1] = 77  # Nothing to stretch.
    x = image.astype(np.int64)
    low, high = x.min((0, 1)), x.max((0, 1))
    expected = (x - low) * 255 // np.maximum(high - low, 1)
    expected[..., 1] = 77
    self.assertAllEqual(_Apply('AutoContrast', image), expected)

  def testInvert(self):
    image = _Image()
    self.assertAllEqual(_Apply('Invert', image), 255 - image.astype(int))

  @parameterized.parameters((7, 9, 256), (40, 50, 256), (40, 50, 20))
  def testEqualize(self, height, width, high):
    image = _Image(height, width, high=high)
    expected = image.copy()
    for c in range(3):
      counts = np.bincount(image[..., c].ravel(), minlength=256)
      used = counts[counts > 0]
      step = (used.sum() - used[-1]) // 255
      if len(used) < 2 or not step:
        continue
      table, total = np.zeros(256, int), step // 2
      for i in range(256):
        table[i] = min(total // step, 255)
        total += counts[i]
      expected[..., c] = table[image[..., c]]
    self.assertAllEqual(_Apply('Equalize', image), expected)
    self.assertEqual((expected == image).all(), height == 7)

  @parameterized.parameters(0.0, 100.0, 128.9, 256.0)
  def testSolarize(self, value):
    image = _Image().astype(int)
    expected = np.where(image < int(value), image, 255 - image)
    self.assertAllEqual(_Apply('Solarize', _Image(), value), expected)

  def testSolarizeAdd(self):
    image = _Image().astype(int)
    expected = np.where(image < 128, np.minimum(image + 110, 255), image)
    self.assertAllEqual(_Apply('SolarizeAdd', _Image(), 110.0), expected)

  @parameterized.parameters(0, 1, 4, 8)
  def testPosterize(self, bits):
    image = _Image().astype(int)
    mask = 256 - 2 ** (8 - bits)
    self.assertAllEqual(_Apply('Posterize', _Image(), bits), image & mask)

  @parameterized.parameters(0.0, 0.1, 1.0, 1.9)
  def testBlends(self, factor):
    image = _Image(20, 30)
    grey = _Grey(image)
    padded = image.astype(np.int64)
    smooth = 4 * padded[1:-1, 1:-1] + sum(
      padded[y : y + 18, x : x + 28] for y in range(3) for x in range(3)
    )
    smoothed = image.astype(np.float64)
    smoothed[1:-1, 1:-1] = np.floor(smooth / 13 + 0.5)
    for name, degenerate in (
      ('Color', grey[..., np.newaxis]),
      ('Contrast', np.floor(grey.mean() + 0.5)),
      ('Brightness', 0.0),
      ('Sharpness', smoothed),
    ):
      output = _Apply(name, image, factor)
      exact = _Blend(degenerate, image, factor)
      # Cut off, except where rounding puts it on the other side.
      self.assertAllInRange(exact - output, -0.001, 1.001)
      if factor == 1.0:
        self.assertAllEqual(output, image, name)
      if factor == 0.0:
        self.assertAllEqual(output, exact, name)

  def testApplyChoosesByIndex(self):
    image = tf.constant(_Image())
    for i, operation in enumerate(image_ops.OPERATIONS.values()):
      value = tf.constant(0.7)
      self.assertAllEqual(
        image_ops.Apply(tf.constant(i), image, value), operation(image, value)
      )

  def testShapeIsStaticInGraphs(self):
    @tf.function(
      input_signature=[
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([8, 9, 3], tf.uint8),
      ]
    )
    def _Run(index, image):
      output = image_ops.Apply(index, image, tf.constant(1.0))
      self.assertEqual(output.shape, [8, 9, 3])
      return output

    _Run(tf.constant(3), tf.zeros([8, 9, 3], tf.uint8))


if __name__ == '__main__':
  tf.test.main()
