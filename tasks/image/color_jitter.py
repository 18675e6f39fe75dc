"""Random brightness, saturation, hue and contrast."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform


class ColorJitter(image_transform.ImageTransform):
  """Changes the colours of each image by draws of its own, in this order.

  The defaults are those of Inception's training. What leaves the range of
  colours is clipped at the end.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('brightness', 32 / 255, 'At most so much of white is added.')
    p.Define('saturation', 0.5, 'The factor is from 1 - this to 1 + this.')
    p.Define('hue', 0.2, 'At most so much of the circle of hues is turned.')
    p.Define('contrast', 0.5, 'The factor is from 1 - this to 1 + this.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name, limit in (
      ('brightness', 1.0),
      ('saturation', 1.0),
      ('hue', 0.5),
      ('contrast', 1.0),
    ):
      if not 0 <= p.Get(name) <= limit:
        raise ValueError(
          f'ColorJitter: {name}={p.Get(name)} must be from 0 to {limit}'
        )

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    p = self.params
    brightness, saturation, hue, contrast = image_transform.Uniform(
      seed,
      *((-x, x) for x in (p.brightness, p.saturation, p.hue, p.contrast)),
    )
    x = image / 255.0
    if p.brightness:
      x = tf.clip_by_value(x + brightness, 0.0, 1.0)
    if p.saturation:
      x = tf.image.adjust_saturation(x, 1.0 + saturation)
    if p.hue:
      x = tf.image.adjust_hue(x, hue)
    if p.contrast:
      x = tf.image.adjust_contrast(x, 1.0 + contrast)
    return 255.0 * tf.clip_by_value(x, 0.0, 1.0)
