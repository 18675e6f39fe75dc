"""The random crop of small images: pad on all sides, cut the size again."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform

_MODES = ('constant', 'reflect')


class PaddedCrop(image_transform.ImageTransform):
  """Shifts an image by at most `pad` pixels, as is usual for CIFAR."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('pad', 4, 'Pixels on each side.')
    p.Define('mode', 'constant', "'constant' (black) or 'reflect'.")
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.mode not in _MODES:
      raise ValueError(
        f'PaddedCrop: mode={self.params.mode!r} is none of {", ".join(_MODES)}'
      )

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    p = self.params
    padded = tf.pad(image, [[p.pad, p.pad], [p.pad, p.pad], [0, 0]], p.mode)
    corner = tf.random.stateless_uniform(
      [2], seed, 0, 2 * p.pad + 1, dtype=tf.int32
    )
    begin = tf.concat([corner, [0]], axis=0)
    return tf.ensure_shape(
      tf.slice(padded, begin, tf.shape(image)), image.shape
    )
