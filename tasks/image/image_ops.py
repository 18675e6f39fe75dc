"""The operations of AutoAugment (Cubuk et al., arXiv 1805.09501) on one image.

They do what the functions of the Python Imaging Library do that the paper used:
images are uint8 [height, width, 3], fractions are cut off, and what a geometric
operation leaves empty is grey. Each takes an image and a value, a float32
scalar, and returns an image of the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from tasks.image import augment

_GREY = 128.0

# Weights of red, green, blue in what an eye sees, as in ITU-R 601-2.
_LUMA = (0.299, 0.587, 0.114)

Operation = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def _Affine(image: tf.Tensor, rows: list[list], shift: list) -> tf.Tensor:
  matrix = tf.stack(
    [tf.stack([tf.cast(x, tf.float32) for x in r]) for r in rows]
  )
  shift = tf.stack([tf.cast(x, tf.float32) for x in shift])
  (output,) = tf.unstack(
    augment.Affine(
      image[tf.newaxis],
      matrix[tf.newaxis],
      shift[tf.newaxis],
      fill=_GREY,
      interpolation='NEAREST',
    ),
    num=1,
  )
  return tf.ensure_shape(output, image.shape)


def _Size(image: tf.Tensor, axis: int) -> tf.Tensor:
  return tf.cast(tf.shape(image)[axis], tf.float32)


def ShearX(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Moves rows to the left: `value` pixels for each pixel from the top."""
  return _Affine(image, [[1, value], [0, 1]], [value * _Size(image, 0) / 2, 0])


def ShearY(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Moves columns up: `value` pixels for each pixel from the left."""
  return _Affine(image, [[1, 0], [value, 1]], [0, value * _Size(image, 1) / 2])


def TranslateX(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Moves by `value` of the width to the left."""
  return _Affine(
    image, [[1, 0], [0, 1]], [tf.round(value * _Size(image, 1)), 0]
  )


def TranslateY(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Moves by `value` of the height up."""
  return _Affine(
    image, [[1, 0], [0, 1]], [0, tf.round(value * _Size(image, 0))]
  )


def Rotate(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Turns by `value` degrees around the centre, counter-clockwise."""
  angle = value * (math.pi / 180.0)
  c, s = tf.cos(angle), tf.sin(angle)
  return _Affine(image, [[c, -s], [s, c]], [0, 0])


def AutoContrast(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Stretches each colour so that it goes from 0 to 255."""
  del value
  x = tf.cast(image, tf.float32)
  low, high = tf.reduce_min(x, [0, 1]), tf.reduce_max(x, [0, 1])
  scale = 255.0 / tf.maximum(high - low, 1.0)
  # Rounding errors must not take a whole number below itself.
  stretched = _ToUint8((x - low) * scale + 1e-3)
  return tf.where(high > low, stretched, image)


def Invert(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """The negative."""
  del value
  return 255 - image


def Equalize(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Makes the histogram of each colour as even as a table of values can."""
  del value
  channels = tf.unstack(image, axis=-1)
  return tf.stack([_EqualizeChannel(x) for x in channels], axis=-1)


def _EqualizeChannel(channel: tf.Tensor) -> tf.Tensor:
  x = tf.cast(channel, tf.int32)
  counts = tf.math.bincount(tf.reshape(x, [-1]), minlength=256, maxlength=256)
  # Pixels that are not of the lightest value, by steps of the output.
  step = (tf.size(x) - counts[tf.reduce_max(x)]) // 255
  before = tf.cumsum(counts, exclusive=True)
  table = (before + step // 2) // tf.maximum(step, 1)
  table = tf.cast(tf.minimum(table, 255), tf.uint8)
  return tf.where(step > 0, tf.gather(table, x), channel)


def Solarize(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Inverts what is not below `value`."""
  below = tf.cast(image, tf.float32) < tf.floor(value)
  return tf.where(below, image, 255 - image)


def SolarizeAdd(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Adds `value` to what is below 128."""
  lighter = _ToUint8(tf.cast(image, tf.float32) + tf.floor(value))
  return tf.where(image < 128, lighter, image)


def Posterize(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Keeps the first `value` of the 8 bits, rounded to a whole number."""
  shift = tf.cast(8.0 - tf.round(value), tf.int32)
  x = tf.cast(image, tf.int32)
  x = tf.bitwise.left_shift(tf.bitwise.right_shift(x, shift), shift)
  return tf.cast(x, tf.uint8)


def Color(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Colours `value` times as strong; 0: grey, 1: as they are."""
  return _Blend(
    tf.cast(_Grey(image)[..., tf.newaxis], tf.float32), image, value
  )


def Contrast(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Contrast `value` times as strong; 0: one grey, 1: as it is."""
  mean = tf.reduce_mean(tf.cast(_Grey(image), tf.float32))
  return _Blend(tf.floor(mean + 0.5), image, value)


def Brightness(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """`value` times as light; 0: black, 1: as it is."""
  return _Blend(tf.constant(0.0), image, value)


def Sharpness(image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """0: smoothed, 1: as it is, 2: sharpened; pixels at the edge stay."""
  kernel = tf.constant([[1, 1, 1], [1, 5, 1], [1, 1, 1]], tf.float32) / 13.0
  x = tf.cast(image, tf.float32)
  smooth = tf.nn.depthwise_conv2d(
    x[tf.newaxis],
    tf.tile(kernel[..., tf.newaxis, tf.newaxis], [1, 1, 3, 1]),
    [1, 1, 1, 1],
    'VALID',
  )[0]
  inside = tf.pad(tf.ones_like(smooth), [[1, 1], [1, 1], [0, 0]]) > 0.0
  smooth = tf.pad(tf.floor(smooth + 0.5), [[1, 1], [1, 1], [0, 0]])
  return _Blend(tf.where(inside, smooth, x), image, value)


def _Grey(image: tf.Tensor) -> tf.Tensor:
  """How light each pixel is, uint8 [height, width]."""
  return _ToUint8(tf.tensordot(tf.cast(image, tf.float32), _LUMA, 1) + 0.5)


def _Blend(
  degenerate: tf.Tensor, image: tf.Tensor, value: tf.Tensor
) -> tf.Tensor:
  """`degenerate` where value is 0, the image where it is 1, and beyond."""
  return _ToUint8(
    degenerate + value * (tf.cast(image, tf.float32) - degenerate)
  )


def _ToUint8(x: tf.Tensor) -> tf.Tensor:
  return tf.cast(tf.clip_by_value(x, 0.0, 255.0), tf.uint8)


OPERATIONS: dict[str, Operation] = {
  x.__name__: x
  for x in (
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    AutoContrast,
    Invert,
    Equalize,
    Solarize,
    SolarizeAdd,
    Posterize,
    Color,
    Contrast,
    Brightness,
    Sharpness,
  )
}


def Apply(index: tf.Tensor, image: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  """Applies one of OPERATIONS; only that one is computed.

  Args:
    index: int32 scalar, its place in OPERATIONS.
    image: uint8 [height, width, 3].
    value: float32 scalar, of the operation.

  Returns:
    An image of the same shape.
  """

  def _Branch(operation):
    return lambda: operation(image, value)

  return tf.switch_case(index, [_Branch(x) for x in OPERATIONS.values()])
