"""A table of token vectors that another cell lends, for tied embeddings."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer


def TiedTable(layer: base_layer.BaseLayer) -> tf.Tensor:
  """The weight that a layer's param tied_weight names.

  Args:
    layer: with params tied_weight, vocab_size and dim.

  Returns:
    [vocab_size, dim].

  Raises:
    ValueError: for a weight of another shape.
  """
  p = layer.params
  table = layer.SharedWeight(p.tied_weight)
  if table.shape != (p.vocab_size, p.dim):
    raise ValueError(
      f'{layer.path}: tied_weight={p.tied_weight!r} is {table.shape}, not '
      f'({p.vocab_size}, {p.dim}), (vocab_size, dim)'
    )
  return table
