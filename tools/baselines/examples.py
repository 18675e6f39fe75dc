"""All examples of an input as arrays."""

from __future__ import annotations

import dataclasses

import numpy as np

from lingvo_gpipe import base_input, user_error


@dataclasses.dataclass(frozen=True)
class Examples:
  """Images as vectors of their pixels.

  Attributes:
    pixels: float32 [n, height * width * channels].
    labels: integers [n].
  """

  pixels: np.ndarray
  labels: np.ndarray


def CheckIsImages(generator: base_input.BaseInput) -> None:
  """Refuses an input that is not one of labelled images.

  Args:
    generator: the input; no data is read.

  Raises:
    UserError: where its batches lack `inputs` [N, height, width, channels] or
      `labels` [N].
  """
  spec = generator.BatchSpec()
  ranks = [
    spec[name].shape.rank if name in spec else None
    for name in ('inputs', 'labels')
  ]
  if ranks != [4, 1]:
    raise user_error.UserError(
      f'{type(generator).__name__} is no input of labelled images: its batches '
      f'have {", ".join(sorted(spec))}, and not inputs [N, height, width, '
      'channels] and labels [N]; name an image model'
    )


def Read(generator: base_input.BaseInput) -> Examples:
  """Reads one pass of an input.

  Args:
    generator: the input, not one of training, whose data has no end.

  Returns:
    Its examples of weight above 0, in their order.

  Raises:
    ValueError: for an input of training.
  """
  if generator.params.training:
    raise ValueError(f'{type(generator).__name__}: training=True has no end')
  pixels, labels = [], []
  for batch in generator.Dataset().as_numpy_iterator():
    real = batch['weights'] > 0
    images = batch['inputs'][real]
    pixels.append(images.reshape(len(images), -1).astype(np.float32))
    labels.append(batch['labels'][real])
  return Examples(np.concatenate(pixels), np.concatenate(labels))
