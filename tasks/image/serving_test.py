"""Tests of serving."""

import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from tasks.image import folder_source, image_input, serving

# Smooth, as JPEG likes it; TensorFlow's JPEG is fast rather than exact.
_GREY = np.arange(0, 240, 5, dtype=np.uint8).reshape(6, 8, 1)
_COLOUR = np.stack([_GREY[..., 0], _GREY[::-1, :, 0], 255 - _GREY[..., 0]], -1)


def _Bmp(pixels):
  """The contents of an uncompressed BMP file of 8 bits a channel."""
  height, width, channels = pixels.shape
  rows = pixels[::-1, :, ::-1]  # From the bottom; blue, green, red.
  padding = bytes(-width * channels % 4)
  body = b''.join(row.tobytes() + padding for row in rows)
  palette = b''.join(bytes([i, i, i, 0]) for i in range(256))
  palette = palette if channels == 1 else b''
  offset = 54 + len(palette)
  fields = (40, width, height, 1 | (8 * channels) << 16, 0, len(body))
  header = b'BM' + np.array([offset + len(body), 0, offset], '<u4').tobytes()
  header += np.array([*fields, 0, 0, 0, 0], '<u4').tobytes()
  return header + palette + body


def _Png(pixels):
  return tf.io.encode_png(pixels)


def _Jpeg(pixels):
  return tf.io.encode_jpeg(pixels, quality=100, chroma_downsampling=False)


def _Gif(pixels):
  """The contents of a GIF file of up to 126 pixels, not compressed."""
  height, width, channels = pixels.shape
  palette = np.zeros([128, 3], np.uint8)
  palette[: height * width] = pixels.reshape(-1, channels)
  size = np.array([width, height], '<u2').tobytes()
  # Each code is a byte: 128 clears the table, 129 ends the picture.
  codes = bytes([128, *range(height * width), 129])
  image = b',' + bytes(4) + size + bytes([0, 7, len(codes)]) + codes + bytes(1)
  return b'GIF87a' + size + b'\xf6\0\0' + palette.tobytes() + image + b';'


class DecodeGreyTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.named_parameters(
    ('Png', _Png, 0.0),
    ('Jpeg', _Jpeg, 12.0),
    ('Bmp', _Bmp, 0.0),
    ('Gif', _Gif, 0.0),
  )
  def testColours(self, encode, tolerance):
    luminance = (_COLOUR * [0.299, 0.587, 0.114]).sum(-1, keepdims=True)
    for pixels, expected in ((_GREY, _GREY), (_COLOUR, luminance)):
      decoded = serving.DecodeGrey(encode(pixels))
      self.assertEqual(decoded.dtype, tf.float32)
      self.assertAllClose(decoded, expected, atol=tolerance + 1e-4)

  def testTransparencyIsIgnored(self):
    alpha = np.full([6, 8, 1], 7, np.uint8)
    grey = np.repeat(_GREY, 3, -1)
    for pixels in (_GREY, grey):
      decoded = serving.DecodeGrey(_Png(np.concatenate([pixels, alpha], -1)))
      self.assertAllClose(decoded, _GREY, atol=1e-4)


class SignaturesTest(tf.test.TestCase):
  def _Signatures(self):
    return serving.Signatures(
      [6, 8, 1], lambda contents: serving.DecodeGrey(contents) / 255.0
    )

  def testImages(self):
    signature = self._Signatures()['serving_default']
    self.assertEqual(
      signature.input_spec,
      tf.TensorSpec([None, 6, 8, 1], tf.float32, 'images'),
    )
    images = tf.ones([2, 6, 8, 1])
    self.assertIs(signature.to_batch(images)['inputs'], images)

  def testBytes(self):
    signature = self._Signatures()['image_bytes']
    function = tf.function(
      lambda contents: signature.to_batch(contents)['inputs'],
      input_signature=[signature.input_spec],
    )
    self.assertEqual(
      function.get_concrete_function().output_shapes.as_list(), [None, 6, 8, 1]
    )
    contents = tf.stack([_Png(_GREY), _Jpeg(255 - _GREY)])
    images = function(contents)
    self.assertAllClose(images[0], _GREY / 255.0)
    self.assertAllClose(images[1], 1.0 - _GREY / 255.0, atol=0.05)
    self.assertEqual(function(contents[:0]).shape, [0, 6, 8, 1])
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError, 'image file format'
    ):
      function(tf.constant(['no picture']))


class ImageInputTest(tf.test.TestCase):
  def testServesWhatEvaluationSees(self):
    folder = self.create_tempdir().full_path
    files = []
    draw = np.random.default_rng(1)
    for name, encode, shape in (
      ('cat/1.png', _Png, (40, 30, 3)),
      ('cat/2.gif', _Gif, (9, 14, 3)),
      ('dog/1.jpg', _Jpeg, (25, 60, 3)),
      ('dog/2.bmp', _Bmp, (33, 21, 3)),
    ):
      pixels = draw.integers(0, 256, shape, np.uint8)
      path = os.path.join(folder, 'train', name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      contents = encode(pixels)
      files.append(
        contents if isinstance(contents, bytes) else contents.numpy()
      )
      with open(path, 'wb') as f:
        f.write(files[-1])
    generator = (
      image_input.ImageInput.Params()
      .Set(
        source=folder_source.FolderSource.Params().Set(data_dir=folder),
        image_size=16,
        batch_size=4,
        label_offset=1,
      )
      .Instantiate()
    )
    (batch,) = generator.Dataset()
    signature = generator.ServingSignatures()['image_bytes']
    inputs = signature.to_batch(tf.constant(files))['inputs']
    self.assertAllEqual(batch['labels'], [1, 1, 2, 2])
    self.assertGreater(np.ptp(batch['inputs']), 1.0)
    self.assertAllEqual(inputs, batch['inputs'])
    self.assertEqual(generator.ClassNames(), ['background', 'cat', 'dog'])


class ClassifierOutputsTest(tf.test.TestCase):
  def testOutputs(self):
    logits = tf.constant([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]], tf.bfloat16)
    outputs = serving.ClassifierOutputs(nested_map.NestedMap(logits=logits))
    self.assertEqual(
      {name: x.dtype for name, x in outputs.items()},
      {
        'logits': tf.float32,
        'probabilities': tf.float32,
        'classes': tf.int64,
      },
    )
    self.assertAllEqual(outputs['classes'], [2, 0])
    exponentials = np.exp([0.0, 1.0, 3.0])
    self.assertAllClose(
      outputs['probabilities'][0], exponentials / exponentials.sum()
    )

  def testNoLogits(self):
    with self.assertRaisesRegex(ValueError, 'must return `logits`.* loss'):
      serving.ClassifierOutputs(nested_map.NestedMap(loss=tf.constant(1.0)))


if __name__ == '__main__':
  tf.test.main()
