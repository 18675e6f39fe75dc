"""Augmentation of images by stateless draws, whole mini-batches at once."""

from __future__ import annotations

import math

import tensorflow as tf


def RandomAffine(
  images: tf.Tensor,
  seed: tf.Tensor,
  *,
  max_rotation: float = 0.0,
  max_zoom: float = 0.0,
  max_shift: float = 0.0,
) -> tf.Tensor:
  """Rotates, zooms and shifts each image by draws of its own.

  Draws are uniform. What comes in from outside is 0.

  Args:
    images: [batch, height, width, channels].
    seed: int64 [2].
    max_rotation: degrees, to both sides.
    max_zoom: height and width change, independently, by at most this share.
    max_shift: pixels, in all directions.

  Returns:
    Images of the same shape and dtype, bilinearly interpolated.
  """
  batch = tf.shape(images)[0]
  draws = tf.random.stateless_uniform([5, batch], seed, -1.0, 1.0)
  angle = draws[0] * (max_rotation * math.pi / 180.0)
  zoom_y, zoom_x = 1.0 + draws[1] * max_zoom, 1.0 + draws[2] * max_zoom
  shift_y, shift_x = draws[3] * max_shift, draws[4] * max_shift
  matrix = tf.stack(
    [
      tf.stack([tf.cos(angle) / zoom_x, -tf.sin(angle) / zoom_x], axis=1),
      tf.stack([tf.sin(angle) / zoom_y, tf.cos(angle) / zoom_y], axis=1),
    ],
    axis=1,
  )  # [batch, 2, 2], from (x, y) of the output to (x, y) of the input
  return Affine(images, matrix, tf.stack([shift_x, shift_y], axis=1))


def Affine(
  images: tf.Tensor,
  matrix: tf.Tensor,
  shift: tf.Tensor,
  *,
  fill: float = 0.0,
  interpolation: str = 'BILINEAR',
) -> tf.Tensor:
  """Maps images around their centres.

  The output at a point (x, y) from the centre is the input at matrix @ (x, y) +
  shift from the centre.

  Args:
    images: [batch, height, width, channels].
    matrix: float32 [batch, 2, 2].
    shift: float32 [batch, 2], pixels (x, y).
    fill: where the input has nothing.
    interpolation: 'BILINEAR' or 'NEAREST'.

  Returns:
    Images of the same shape and dtype.
  """
  size = tf.shape(images)[1:3]
  centre = (tf.cast(size, tf.float32)[::-1] - 1.0) / 2.0  # (x, y)
  offset = centre + shift - tf.linalg.matvec(matrix, centre)
  zeros = tf.zeros_like(offset)  # No perspective.
  rows = [matrix[:, 0], offset[:, :1], matrix[:, 1], offset[:, 1:], zeros]
  return tf.raw_ops.ImageProjectiveTransformV3(
    images=images,
    transforms=tf.concat(rows, axis=1),  # [batch, 8]
    output_shape=size,
    fill_value=fill,
    interpolation=interpolation,
    fill_mode='CONSTANT',
  )
