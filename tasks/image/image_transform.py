"""What augmentation of images consists of: three kinds of transforms.

All are pure functions of their inputs and of a seed; an input gives every
example, or mini-batch, and every transform a seed of its own.
"""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams


class Transform:
  """The base class of the three kinds."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    return hyperparams.InstantiableParams(cls)

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()


class Crop(Transform):
  """Chooses the part of a picture that is decoded; may only come first."""

  def Box(self, size: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws the part.

    Args:
      size: int32 [2], height and width of the picture.
      seed: int64 [2].

    Returns:
      int32 [4]: top, left, height, width.
    """
    raise NotImplementedError(f'{type(self).__name__}.Box')


class ImageTransform(Transform):
  """Changes one image."""

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Changes an image.

    Args:
      image: float32 [size, size, 3], from 0 to 255.
      seed: int64 [2].

    Returns:
      An image of the same shape and range.
    """
    raise NotImplementedError(f'{type(self).__name__}.Apply')


class BatchTransform(Transform):
  """Changes a mini-batch; comes after all others, on normalised images."""

  def ExtraFields(self, batch_size: int) -> dict[str, tf.TensorSpec]:
    """The fields that Apply adds.

    Args:
      batch_size: N.

    Returns:
      {name: TensorSpec [N, ...]}.
    """
    del batch_size
    return {}

  def Apply(
    self, batch: dict[str, tf.Tensor], seed: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Changes a mini-batch.

    Args:
      batch: inputs [N, size, size, 3], labels [N].
      seed: int64 [2].

    Returns:
      The mini-batch with its ExtraFields.
    """
    raise NotImplementedError(f'{type(self).__name__}.Apply')

  def Unchanged(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Evaluation's: the mini-batch as it is, with ExtraFields that say so.

    Args:
      batch: as for Apply.

    Returns:
      The mini-batch with its ExtraFields.
    """
    return batch


def Uniform(seed: tf.Tensor, *ranges: tuple[float, float]) -> list[tf.Tensor]:
  """Draws uniform numbers.

  Args:
    seed: int64 [2].
    *ranges: (low, high) of each.

  Returns:
    A float32 scalar for each range.
  """
  draws = tf.unstack(tf.random.stateless_uniform([len(ranges)], seed))
  return [
    low + (high - low) * draw
    for (low, high), draw in zip(ranges, draws, strict=True)
  ]
