"""Cutout (DeVries and Taylor, arXiv 1708.04552)."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform


class Cutout(image_transform.ImageTransform):
  """Hides a square whose centre is anywhere, so it may reach over the edge."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('size', 16, 'Side of the square, in pixels.')
    p.Define(
      'fill',
      [123.675, 116.28, 103.53],
      'Red, green and blue of the square, 0 to 255. The default is the mean of '
      'ImageNet, which normalisation makes 0.',
    )
    return p

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    p = self.params
    shape = tf.shape(image)
    draws = tf.random.stateless_uniform([2], seed)
    centre = tf.cast(draws * tf.cast(shape[:2], tf.float32), tf.int32)
    inside = []
    for axis in range(2):
      places = tf.range(shape[axis])
      begin = centre[axis] - p.size // 2
      inside.append((places >= begin) & (places < begin + p.size))
    hidden = inside[0][:, tf.newaxis] & inside[1]  # [height, width]
    return tf.where(hidden[..., tf.newaxis], tf.constant(p.fill), image)
