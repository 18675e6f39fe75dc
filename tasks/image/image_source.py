"""Where labelled pictures come from: a folder, TFDS, anything like them.

A source gives pictures as their files' bytes, in an order that restarts at any
place. Decoding is not its business, so that nothing that is skipped is decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import hyperparams


class Examples(NamedTuple):
  """Examples in order.

  Attributes:
    elements: a Dataset of what stands for an example, cheap to skip.
    load: from an element to {'image': string scalar, bytes of a picture file;
      'label': int64 scalar}; traced in a Dataset's map.
    name: from an element to a string scalar that tells a person which example
      it is; traced likewise.
  """

  elements: tf.data.Dataset
  load: Callable[[Any], dict[str, tf.Tensor]]
  name: Callable[[Any], tf.Tensor]


class ImageSource:
  """The base class. Making one costs nothing and needs no data."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define('data_dir', '', 'Where the data is.')
    p.Define('split', 'train', "Which part of it, such as 'train'.")
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()

  @property
  def class_names(self) -> tuple[str, ...]:
    """The names of the classes; label i is that of the i-th.

    Raises:
      UserError: where the data is not there, here and below.
    """
    raise NotImplementedError(f'{type(self).__name__}.class_names')

  @property
  def num_examples(self) -> int:
    """Examples of the split; no picture is read for it."""
    raise NotImplementedError(f'{type(self).__name__}.num_examples')

  def Examples(self, start: int, *, training: bool, seed: int) -> Examples:
    """Examples from the `start`-th on.

    Args:
      start: how many come before.
      training: True: without end, every epoch in an order of its own. False:
        one pass in a fixed order.
      seed: of the orders.

    Returns:
      The Examples.
    """
    raise NotImplementedError(f'{type(self).__name__}.Examples')
