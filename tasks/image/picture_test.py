"""Tests of picture."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import picture


def _Image(height=40, width=60):
  values = tf.random.stateless_uniform([5, 6, 3], (1, 2), maxval=255.0)
  return tf.cast(tf.image.resize(values, [height, width]), tf.uint8)


def _Bmp(image):
  """A 24-bit BMP file; TensorFlow writes none."""
  height, width, _ = image.shape
  row = np.zeros([height, (3 * width + 3) // 4 * 4], np.uint8)
  row[:, : 3 * width] = image[::-1, :, ::-1].reshape(height, -1)
  numbers = [
    (len(row.tobytes()) + 54, 4),
    (0, 4),
    (54, 4),
    (40, 4),
    (width, 4),
    (height, 4),
    (1, 2),
    (24, 2),
    *[(0, 4)] * 6,
  ]
  header = b''.join(int(x).to_bytes(n, 'little') for x, n in numbers)
  return b'BM' + header + row.tobytes()


class PictureTest(tf.test.TestCase, parameterized.TestCase):
  def testJpegIsTheCropOfTheWhole(self):
    encoded = tf.io.encode_jpeg(_Image())
    part = picture.DecodeBox(encoded, lambda size: tf.constant([3, 5, 20, 31]))
    whole = tf.io.decode_jpeg(encoded)[3:23, 5:36]
    self.assertAllEqual(part[:, :-1], whole[:, :-1])
    # Colours have half the resolution; at an edge their neighbours are unknown.
    self.assertAllClose(part[:, -1], whole[:, -1], atol=8)

  def testBoxSeesTheSize(self):
    for encode in (tf.io.encode_jpeg, tf.io.encode_png):
      image = picture.DecodeBox(
        encode(_Image()),
        lambda size: tf.stack([0, 0, size[0] // 2, size[1] // 3]),
      )
      self.assertEqual(image.shape, [20, 20, 3])

  def testLosslessFormats(self):
    image = _Image().numpy()
    for encoded in (tf.io.encode_png(image), tf.constant(_Bmp(image))):
      part = picture.DecodeBox(
        encoded, lambda size: tf.constant([3, 5, 20, 31])
      )
      self.assertAllEqual(part, image[3:23, 5:36])

  @parameterized.parameters(1, 2, 4)
  def testOtherNumbersOfChannels(self, channels):
    # Grey, grey with alpha, colour with alpha.
    image = np.concatenate([_Image().numpy()] * 2, axis=-1)[..., :channels]
    decoded = picture.DecodeBox(
      tf.io.encode_png(image), lambda size: tf.constant([0, 0, 40, 60])
    )
    colours = image[..., :3] if channels > 2 else image[..., :1]
    self.assertAllEqual(decoded, np.broadcast_to(colours, [40, 60, 3]))

  def testGreyJpeg(self):
    encoded = tf.io.encode_jpeg(_Image()[..., :1])
    decoded = picture.DecodeBox(encoded, lambda size: tf.constant([0, 0, 9, 9]))
    self.assertEqual(decoded.shape, [9, 9, 3])
    self.assertAllEqual(decoded[..., 0], decoded[..., 2])

  def testCrop(self):
    # 60 / 8 and 100 / 8 are cut away in all, rounded down on each side.
    size = tf.constant([60, 100])
    box = picture.CentreBox(size, 'crop', 0.875)
    self.assertAllEqual(box, [3, 6, 54, 88])
    image = _Image(60, 100)
    self.assertAllEqual(image[3:57, 6:94], tf.image.central_crop(image, 0.875))

  def testSquare(self):
    box = picture.CentreBox(tf.constant([60, 100]), 'square', 0.5)
    self.assertAllEqual(box, [15, 35, 30, 30])

  def testStretch(self):
    box = picture.CentreBox(tf.constant([60, 100]), 'stretch', 0.5)
    self.assertAllEqual(box, [0, 0, 60, 100])

  def testWhole(self):
    box = picture.CentreBox(tf.constant([61, 101]), 'crop', 1.0)
    self.assertAllEqual(box, [0, 0, 61, 101])

  def testResize(self):
    ramp = tf.tile(tf.range(8.0)[tf.newaxis, :, tf.newaxis], [8, 1, 3])
    half = picture.Resize(ramp, 4)
    self.assertAllClose(half[0, :, 0], [0.5, 2.5, 4.5, 6.5])
    # Of a single bright pixel bilinear sampling may see nothing.
    dot = tf.one_hot(tf.fill([64, 3], 5), 64, 255.0, axis=1)
    self.assertAllEqual(tf.reduce_max(picture.Resize(dot, 4)), 0.0)
    self.assertGreater(tf.reduce_max(picture.Resize(dot, 4, True)), 5.0)


if __name__ == '__main__':
  tf.test.main()
