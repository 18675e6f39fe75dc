"""Mixup (Zhang et al., arXiv 1710.09412)."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform

# Gammas of less are too near 0 for float64.
_MIN_ALPHA = 0.01


class Mixup(image_transform.BatchTransform):
  """Each image becomes a mixture with the image before it in its mini-batch.

  Every image draws its own share, from a Beta distribution. `mixed_labels` are
  the labels of the other images, `mix` the shares of the own ones.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('alpha', 0.2, 'Both parameters of the Beta distribution.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.alpha < _MIN_ALPHA:
      raise ValueError(
        f'Mixup: alpha={self.params.alpha} must be {_MIN_ALPHA} or more; '
        'without the transform nothing is mixed'
      )

  def ExtraFields(self, batch_size: int) -> dict[str, tf.TensorSpec]:
    return {
      'mixed_labels': tf.TensorSpec([batch_size], tf.int32),
      'mix': tf.TensorSpec([batch_size], tf.float32),
    }

  def Apply(
    self, batch: dict[str, tf.Tensor], seed: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    images, labels = batch['inputs'], batch['labels']
    # Beta from two Gammas.
    gammas = tf.random.stateless_gamma(
      [2, tf.shape(labels)[0]], seed, self.params.alpha, dtype=tf.float64
    )
    mix = tf.cast(gammas[0] / (gammas[0] + gammas[1]), tf.float32)
    own = mix[:, tf.newaxis, tf.newaxis, tf.newaxis]
    return {
      **batch,
      'inputs': own * images + (1.0 - own) * tf.roll(images, 1, axis=0),
      'mixed_labels': tf.roll(labels, 1, axis=0),
      'mix': mix,
    }

  def Unchanged(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    labels = batch['labels']
    return {
      **batch,
      'mixed_labels': labels,
      'mix': tf.ones_like(labels, tf.float32),
    }
