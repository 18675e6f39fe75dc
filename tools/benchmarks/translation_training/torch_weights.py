"""Our weights of a translation model, under the names that PyTorch has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lingvo_gpipe import nested_map

Arrays = dict[str, np.ndarray]

# Of our layers: PyTorch's names in an encoder's and in a decoder's layer.
_ENCODER_NORMS = {'attention': 'norm1', 'feed_forward': 'norm2'}
_DECODER_NORMS = {
  'attention': 'norm1',
  'source_attention': 'norm2',
  'feed_forward': 'norm3',
}


def Named(cells: Mapping[str, nested_map.NestedMap]) -> Arrays:
  """The weights by PyTorch's names.

  Args:
    cells: values of the variables of the cells of a Transformer with
      tied='all', by the cells' names.

  Returns:
    Those of nn.Transformer by its own names, matrices as [outputs, inputs];
    `table` [vocab_size, dim] and `bias` [vocab_size].
  """
  arrays = {
    'table': cells['source_embedding'].w,
    'bias': cells['output'].softmax.b,
    **_Norm('encoder.norm', cells['target_embedding'].source_norm),
    **_Norm('decoder.norm', cells['output'].norm),
  }
  for name, theta in cells.items():
    side, _, index = name.rpartition('_')
    if side in ('encoder', 'decoder'):
      arrays |= _Layer(f'{side}.layers.{index}', theta)
  return {name: np.ascontiguousarray(x) for name, x in arrays.items()}


def _Layer(name: str, theta: nested_map.NestedMap) -> Arrays:
  """A block of encoder or decoder."""
  arrays = {
    **_Attention(f'{name}.self_attn', theta.attention),
    **_Product(f'{name}.linear1', theta.feed_forward.hidden),
    **_Product(f'{name}.linear2', theta.feed_forward.output),
  }
  norms = _ENCODER_NORMS
  if 'source_attention' in theta:
    norms = _DECODER_NORMS
    arrays |= _Attention(f'{name}.multihead_attn', theta.source_attention)
  for ours, theirs in norms.items():
    arrays |= _Norm(f'{name}.{theirs}', theta[f'{ours}_norm'])
  return arrays


def _Attention(name: str, theta: nested_map.NestedMap) -> Arrays:
  """Queries, keys and values are one product of PyTorch's."""
  parts = [theta.qkv] if 'qkv' in theta else [theta.query, theta.kv]
  return {
    f'{name}.in_proj_weight': np.concatenate([p.w for p in parts], 1).T,
    f'{name}.in_proj_bias': np.concatenate([p.b for p in parts]),
    **_Product(f'{name}.out_proj', theta.post),
  }


def _Product(name: str, theta: nested_map.NestedMap) -> Arrays:
  return {f'{name}.weight': theta.w.T, f'{name}.bias': theta.b}


def _Norm(name: str, theta: nested_map.NestedMap) -> Arrays:
  return {f'{name}.weight': theta.gamma, f'{name}.bias': theta.beta}
