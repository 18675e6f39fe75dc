"""The random crop of Inception (Szegedy et al., arXiv 1409.4842, section 6)."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import image_transform

# Draws of a box before the whole picture is taken.
_MAX_ATTEMPTS = 100


class InceptionCrop(image_transform.Crop):
  """A box of random area and aspect ratio anywhere in the picture."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('min_area', 0.08, "Of the box, as a share of the picture's.")
    p.Define('max_area', 1.0, 'Likewise.')
    p.Define('min_aspect_ratio', 3 / 4, 'Width by height of the box.')
    p.Define('max_aspect_ratio', 4 / 3, 'Likewise.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if not 0 < p.min_area <= p.max_area <= 1:
      raise ValueError(
        f'InceptionCrop: min_area={p.min_area}, max_area={p.max_area} must be '
        'in this order, above 0 and at most 1'
      )
    if not 0 < p.min_aspect_ratio <= p.max_aspect_ratio:
      raise ValueError(
        f'InceptionCrop: min_aspect_ratio={p.min_aspect_ratio}, '
        f'max_aspect_ratio={p.max_aspect_ratio} must be in this order, above 0'
      )

  def Box(self, size: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    p = self.params
    begin, shape, _ = tf.image.stateless_sample_distorted_bounding_box(
      tf.concat([size, [3]], axis=0),
      tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),  # The object: everything.
      seed,
      min_object_covered=0.0,
      aspect_ratio_range=[p.min_aspect_ratio, p.max_aspect_ratio],
      area_range=[p.min_area, p.max_area],
      max_attempts=_MAX_ATTEMPTS,
    )
    return tf.concat([begin[:2], shape[:2]], axis=0)
