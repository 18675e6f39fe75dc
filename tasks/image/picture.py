"""Pictures as files hold them: decoding a part, and bringing it to a size."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

# What names of files end with; case does not matter.
EXTENSIONS = ('.jpg', '.jpeg', '.png', '.bmp', '.gif')

# How CentreBox cuts.
CENTRE_MODES = ('crop', 'square', 'stretch')

# From the height and width of a picture, int32 [2], to the box to take of it,
# int32 [4]: top, left, height, width.
Box = Callable[[tf.Tensor], tf.Tensor]


def DecodeBox(encoded: tf.Tensor, box: Box) -> tf.Tensor:
  """Decodes a part of a picture; of a JPEG no more than that is decoded.

  Args:
    encoded: string scalar, the bytes of a JPEG, PNG, BMP or GIF file. Of an
      animation the first picture counts.
    box: says which part.

  Returns:
    uint8 [height, width, 3].
  """

  def _Jpeg():
    return tf.image.decode_and_crop_jpeg(
      encoded, box(tf.io.extract_jpeg_shape(encoded)[:2]), channels=3
    )

  def _Other():
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    top, left, height, width = tf.unstack(box(tf.shape(image)[:2]))
    return image[top : top + height, left : left + width]

  image = tf.cond(tf.io.is_jpeg(encoded), _Jpeg, _Other)
  return tf.ensure_shape(image, [None, None, 3])


def CentreBox(size: tf.Tensor, mode: str, fraction: float) -> tf.Tensor:
  """The box around the centre that evaluation sees.

  Args:
    size: int32 [2], height and width.
    mode: 'crop': `fraction` of the height and of the width, as the evaluation
      of Inception. 'square': a square, its side `fraction` of the shorter side,
      so that nothing is distorted. 'stretch': everything.
    fraction: above 0, at most 1.

  Returns:
    int32 [4]: top, left, height, width.
  """
  if mode == 'stretch':
    part = size
  else:
    sides = tf.fill([2], tf.reduce_min(size)) if mode == 'square' else size
    sides = tf.cast(sides, tf.float64)
    # As tf.image.central_crop rounds: the same on both sides.
    margin = tf.cast((sides - sides * fraction) / 2.0, tf.int32)
    part = tf.cast(sides, tf.int32) - 2 * margin
  return tf.concat([(size - part) // 2, part], axis=0)


def Resize(image: tf.Tensor, size: int, antialias: bool = False) -> tf.Tensor:
  """Brings a picture to `size` x `size` pixels.

  Args:
    image: [height, width, 3].
    size: pixels.
    antialias: True: every pixel of the input counts; False: bilinear, from the
      four nearest.

  Returns:
    float32 [size, size, 3], in the range of the input.
  """
  image = tf.image.resize(image, [size, size], antialias=antialias)
  return tf.ensure_shape(image, [size, size, 3])
