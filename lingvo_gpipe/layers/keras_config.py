"""What Keras serializes of a layer: its shape, its policy, names of weights."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

# Their `dtype` is one, not a policy.
_HAVE_A_DTYPE = ('InputLayer', '__keras_tensor__')


def Plain(value: Any) -> Any:
  """A copy of plain lists, dicts, strings and numbers."""
  return json.loads(json.dumps(value))


def BuiltShape(layer: keras.Layer) -> tuple[int, ...]:
  """The shape of the one input that a layer is built for."""
  shape = (layer.get_build_config() or {}).get('input_shape')
  if isinstance(layer, keras.Model) and layer.built:
    shape = getattr(layer, 'input_shape', shape)
  if (
    not isinstance(shape, list | tuple)
    or not shape
    or any(d is not None and not isinstance(d, int) for d in shape)
  ):
    raise ValueError(
      f'the Keras layer {layer.name!r} is not built for one input; give '
      'input_shape, without the batch'
    )
  return tuple(shape[1:])


def WithPolicy(described: dict[str, Any], name: str) -> dict[str, Any]:
  """Another policy in place of the outermost layer's, wherever that stands."""
  old = described['config'].get('dtype')
  new = {
    'module': 'keras',
    'class_name': 'DTypePolicy',
    'config': {'name': name},
    'registered_name': None,
  }
  if old is None:
    # Functional models have none of their own: that of most of their layers.
    policies = collections.Counter(
      json.dumps(x) for x in _Policies(described) if isinstance(x, dict)
    )
    if not policies:
      described['config']['dtype'] = new
      return described
    old = json.loads(policies.most_common(1)[0][0])
  compute = keras.DTypePolicy(name).compute_dtype
  old_name = old['config']['name'] if isinstance(old, dict) else old

  def _Dtype(value: Any, owner: str | None) -> Any:
    if isinstance(value, dict):
      return new if value == old else value
    if owner in _HAVE_A_DTYPE:
      return compute if tf.as_dtype(value).is_floating else value
    return name if value == old_name else value

  def _Replaced(value: Any, owner: str | None = None) -> Any:
    """`owner`: the class whose config `value` is."""
    if isinstance(value, dict):
      of = value.get('class_name')
      return {
        k: _Dtype(v, owner)
        if k == 'dtype'
        else _Replaced(v, of if k == 'config' else None)
        for k, v in value.items()
      }
    if isinstance(value, list):
      return [_Replaced(v) for v in value]
    return value

  return _Replaced(described)


def _Policies(value: Any) -> Iterator[Any]:
  """All values that are called dtype."""
  if isinstance(value, dict):
    if 'dtype' in value:
      yield value['dtype']
    value = list(value.values())
  if isinstance(value, list):
    for inner in value:
      yield from _Policies(inner)


def WeightNames(layer: keras.Layer) -> Iterator[str]:
  """Names of a layer's weights: of the layers within it, then their own.

  Names that Keras makes up ('dense_7') count the layers of the process; those
  of checkpoints may not. They are counted anew, from the first of the layer.
  """
  made_up = {'variable': 'variable'}
  for inner in layer._flatten_layers(include_self=False):
    stem = _SnakeCase(type(inner).__name__)
    if re.fullmatch(rf'{stem}(_\d+)?', inner.name):
      made_up[inner.name] = stem
  renamed: dict[tuple[str, ...], str] = {}
  counts: collections.Counter = collections.Counter()
  taken: set[str] = set()
  for variable in layer.weights:
    parts = variable.path.split('/')
    if parts[0] == layer.name:
      parts = parts[1:]
    path: tuple[str, ...] = ()
    for part in parts:
      where = (*path, part)
      if where not in renamed:
        stem = made_up.get(re.sub(r'^variable_\d+$', 'variable', part))
        count = counts[(path, stem)]
        counts[(path, stem)] += 1
        renamed[where] = part
        if stem is not None:
          renamed[where] = f'{stem}_{count}' if count else stem
      path = where
    name = '_'.join(renamed[tuple(parts[: i + 1])] for i in range(len(parts)))
    name = re.sub(r'\W', '_', name)
    unique, count = name, 1
    while unique in taken:
      unique = f'{name}_{count}'
      count += 1
    taken.add(unique)
    yield unique


def _SnakeCase(name: str) -> str:
  """The name that Keras gives to layers of a class."""
  name = re.sub(r'(.)([A-Z][a-z]+)', r'\1_\2', re.sub(r'\W+', '', name))
  return re.sub(r'([a-z])([A-Z])', r'\1_\2', name).lower()
