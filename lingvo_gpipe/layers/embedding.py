"""Tokens to vectors, the first cell of a language model."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map, weights
from lingvo_gpipe.layers import dropout, tied_table

NestedMap = nested_map.NestedMap
WeightInit = base_layer.WeightInit

# Of the slowest wave: longer than any sequence.
_LONGEST_PERIOD = 10000.0


def SinusoidalPositions(
  positions: tf.Tensor, dim: int, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Waves of many lengths, from which a network can read distances.

  Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.5,
  with all sines before all cosines, which is the same up to a renumbering.

  Args:
    positions: [...] of any number dtype.
    dim: number of waves, an even number.
    dtype: of the waves, which are computed in float32 or better.

  Returns:
    [..., dim].
  """
  precise = weights.AtLeastFloat32(dtype)
  half = dim // 2
  rates = [_LONGEST_PERIOD ** (-i / half) for i in range(half)]
  angles = tf.cast(positions, precise)[..., tf.newaxis]
  angles *= tf.constant(rates, precise)
  waves = tf.concat([tf.sin(angles), tf.cos(angles)], -1)
  return tf.cast(waves, dtype)


class TokenEmbedding(base_layer.BaseLayer):
  """A vector for each id, plus one for its position.

  The gradient by the table is sparse, tf.IndexedSlices of the ids that occur.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('vocab_size', 0, 'Number of ids.')
    p.Define('dim', 0, 'Width of the vectors.')
    p.Define(
      'scale_sqrt_depth',
      True,
      'Whether vectors are multiplied by sqrt(dim). The table starts with the '
      'deviation 1 / sqrt(dim), which suits it as a softmax too.',
    )
    p.Define(
      'positions',
      'sinusoidal',
      "What is added for positions: 'sinusoidal' waves, or 'none'.",
    )
    p.Define('keep_prob', 1.0, 'Dropout of the sum: how likely a value stays.')
    p.Define(
      'shared_name',
      None,
      'Lends the table to other cells by this name, as SoftmaxLoss can use it; '
      'None: does not.',
    )
    p.Define(
      'tied_weight',
      None,
      'Name of the table of another cell to use (its param shared_name); None: '
      'a table of its own.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('vocab_size', 'dim'):
      if p.Get(name) < 1:
        raise ValueError(f'{self.path}: {name}={p.Get(name)} must be 1 or more')
    if p.positions not in ('none', 'sinusoidal'):
      raise ValueError(
        f"{self.path}: positions={p.positions!r} is neither 'sinusoidal' nor "
        "'none'"
      )
    if p.positions == 'sinusoidal' and p.dim % 2:
      raise ValueError(
        f"{self.path}: dim={p.dim} must be even for positions='sinusoidal'"
      )
    if p.tied_weight and p.shared_name:
      raise ValueError(
        f'{self.path}: a table of another cell, tied_weight={p.tied_weight!r}, '
        f'cannot be lent as shared_name={p.shared_name!r}; set one of them'
      )
    if not p.tied_weight:
      init = None
      if p.params_init is None:
        init = WeightInit.Gaussian(p.dim**-0.5)
      self.CreateVariable(
        'w', base_layer.WeightParams((p.vocab_size, p.dim), init)
      )
    drop = dropout.Dropout.Params().Set(keep_prob=p.keep_prob)
    self.CreateChild('dropout', drop)

  def SharedWeights(self) -> dict[str, str]:
    """The table, with param shared_name."""
    name = self.params.shared_name
    return {name: 'w'} if name else {}

  def UsedWeights(self) -> tuple[str, ...]:
    """The table of another cell, with param tied_weight."""
    name = self.params.tied_weight
    return (name,) if name else ()

  def FProp(self, theta: NestedMap, inputs: Any) -> Any:
    """Looks the vectors up.

    On processors an id outside of [0, vocab_size) is an InvalidArgumentError;
    accelerators give a vector of zeros for it.

    Args:
      theta: w [vocab_size, dim] unless tied.
      inputs: int ids [batch, time], or a NestedMap of
        ids: int [batch, time];
        positions: None or [batch, time], such as those in packed sentences;
          without them a token's place in its row;
        and any other fields, for later cells.

    Returns:
      Vectors x [batch, time, dim]; of a NestedMap one of x and other fields.
    """
    p = self.params
    fields = inputs if isinstance(inputs, dict) else NestedMap(ids=inputs)
    table = tied_table.TiedTable(self) if p.tied_weight else theta.w
    x = tf.gather(table, fields.ids)
    if p.scale_sqrt_depth:
      x *= math.sqrt(p.dim)
    if p.positions == 'sinusoidal':
      positions = fields.get('positions')
      if positions is None:
        time = fields.ids.shape[1]
        positions = tf.range(tf.shape(fields.ids)[1] if time is None else time)
      x += SinusoidalPositions(positions, p.dim, x.dtype)
    x = self.dropout.FProp(theta.dropout, x)
    if not isinstance(inputs, dict):
      return x
    others = {k: v for k, v in inputs.items() if k not in ('ids', 'positions')}
    return NestedMap({**others, 'x': x})
