"""Random mirror images."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform


class RandomFlip(image_transform.ImageTransform):
  """Swaps left and right of every other image, drawn at random."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('probability', 0.5, 'Of a flip.')
    return p

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    (draw,) = image_transform.Uniform(seed, (0.0, 1.0))
    return tf.cond(
      draw < self.params.probability,
      lambda: tf.reverse(image, axis=[1]),
      lambda: image,
    )
