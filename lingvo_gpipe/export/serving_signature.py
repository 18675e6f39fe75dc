"""What may be sent to an exported model: an input generator's part of it.

An input generator that can serve defines

  ServingSignatures()  {name: ServingSignature}; 'serving_default' is the one
                       that programs take which are not told another
  ClassNames()         the names of the classes in order; optional
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class ServingSignature:
  """One way to call an exported model, with any number of examples.

  Both functions are traced into the graph that is exported.

  Attributes:
    input_spec: of the argument, [None, ...], with the argument's name.
    to_batch: from the argument to the fields of the batch that follow from it,
      {name: tensor [batch, ...]}. The others are zeros, which is right for
      labels and for weights of the loss.
    from_outputs: from what the last cell returns in evaluation, or what
      `compute` returns, to what the caller gets, {name: tensor [batch, ...]}.
    compute: what is done instead of a pass through all cells, such as a search;
      called with a list of the one Stage that has all cells, the values of
      their weights (theta), and the batch of to_batch. None: that pass.
  """

  input_spec: tf.TensorSpec
  to_batch: Callable[[tf.Tensor], Mapping[str, tf.Tensor]]
  from_outputs: Callable[[Any], Mapping[str, tf.Tensor]]
  compute: Callable[..., Any] | None = None

  def __post_init__(self):
    shape = self.input_spec.shape
    if not self.input_spec.name or not shape.rank or shape[0] is not None:
      raise ValueError(
        f'a signature takes a named tensor [None, ...], not {self.input_spec}'
      )
