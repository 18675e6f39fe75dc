"""Micro-batches: splitting a mini-batch and putting results together again.

What travels between cells may be any nest of tensors with None in it. Loops
carry flat lists of tensors, so `Flatten` takes the tensors out of a nest and
gives back a function that puts others in their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import metrics

Nest = Any


def Flatten(nest: Nest) -> tuple[list[Any], Callable[[list[Any]], Nest]]:
  """The leaves of `nest` that are not None, and how to put others back.

  Args:
    nest: any nest of tensors, specs or None.

  Returns:
    (leaves, pack), where pack(leaves) has the structure of `nest`.
  """
  flat = tf.nest.flatten(nest)

  def Pack(leaves: list[Any]) -> Nest:
    rest = iter(leaves)
    filled = [None if x is None else next(rest) for x in flat]
    return tf.nest.pack_sequence_as(nest, filled)

  return [x for x in flat if x is not None], Pack


def ToTensors(nest: Nest) -> Nest:
  """Numbers become tensors, None stays."""
  return tf.nest.map_structure(
    lambda x: None if x is None else tf.convert_to_tensor(x), nest
  )


def Specs(nest: Nest) -> Nest:
  """TensorSpecs of a nest of tensors, None stays."""
  return tf.nest.map_structure(
    lambda x: None if x is None else tf.TensorSpec(x.shape, x.dtype), nest
  )


def Bytes(nest: Nest) -> int:
  """Bytes of a nest of tensors or TensorSpecs with static shapes."""
  return sum(x.shape.num_elements() * x.dtype.size for x in Flatten(nest)[0])


def Placeholders(spec: Nest) -> Nest:
  """Placeholders in the current graph for TensorSpecs; the rest stays."""

  def _Placeholder(x):
    if isinstance(x, tf.TensorSpec):
      return tf.compat.v1.placeholder(x.dtype, x.shape)
    return x  # None, or a number

  return tf.nest.map_structure(_Placeholder, spec)


def BatchSize(batch: Nest) -> int:
  """The static size of the batch dimension, the first one of every tensor.

  Args:
    batch: nest of tensors or specs.

  Returns:
    The mini-batch's size.

  Raises:
    ValueError: where tensors disagree, or the size isn't known before running.
  """
  sizes = {}
  for path, leaf in _LeavesWithPaths(batch):
    if leaf is None:
      continue
    if not leaf.shape.rank:
      raise ValueError(
        f'the batch field {path} has shape {leaf.shape}; every field needs a '
        'batch dimension, which comes first'
      )
    sizes[path] = leaf.shape[0]
  if not sizes:
    raise ValueError('the batch holds no tensor')
  if None in sizes.values():
    unknown = [path for path, size in sizes.items() if size is None]
    raise ValueError(
      f'the batch size of {", ".join(unknown)} is not static; batch with '
      'drop_remainder=True, or set the shape'
    )
  if len(set(sizes.values())) > 1:
    listed = ', '.join(f'{path}: {size}' for path, size in sizes.items())
    raise ValueError(f'fields of one batch differ in batch size: {listed}')
  return next(iter(sizes.values()))


def _LeavesWithPaths(nest: Nest, path: str = '') -> list[tuple[str, Any]]:
  if isinstance(nest, dict):
    items = [(f'{path}.{k}' if path else k, v) for k, v in nest.items()]
  elif isinstance(nest, (list, tuple)):
    items = [(f'{path}[{i}]', v) for i, v in enumerate(nest)]
  else:
    return [(path, nest)]
  return [leaf for p, v in items for leaf in _LeavesWithPaths(v, p)]


def Size(batch_size: int, num_micro_batches: int) -> int:
  """Rows of a micro-batch; the last ones may have less, and are filled up."""
  return -(-batch_size // num_micro_batches)


def Split(batch: Nest, num_micro_batches: int, size: int | None = None) -> Nest:
  """[batch, ...] -> [num_micro_batches, micro_batch, ...], row order kept.

  Where the last micro-batches are not full, the last row fills them up: values
  that a model can compute with. See Mask.

  Args:
    batch: nest of tensors and None.
    num_micro_batches: M.
    size: of a micro-batch; None: the smallest.

  Returns:
    The nest.
  """

  def _Split(x):
    if x is None:
      return None
    rows = size or Size(x.shape[0], num_micro_batches)
    padding = rows * num_micro_batches - x.shape[0]
    if padding:
      x = tf.concat([x, tf.repeat(x[-1:], padding, 0)], 0)
    return tf.reshape(x, [num_micro_batches, rows, *x.shape[1:]])

  return tf.nest.map_structure(_Split, batch)


def Mask(
  batch_size: int, num_micro_batches: int, index: Any, dtype: tf.DType
) -> tf.Tensor:
  """[micro_batch] for an index: 1 for rows of the mini-batch, 0 for padding.

  Args:
    batch_size: rows of the mini-batch.
    num_micro_batches: M.
    index: of the micro-batch, integer tensor of any shape, or int.
    dtype: of the mask.

  Returns:
    The mask, [..., micro_batch].
  """
  size = Size(batch_size, num_micro_batches)
  rows = tf.cast(index, tf.int64)[..., tf.newaxis] * size
  rows += tf.range(size, dtype=tf.int64)
  return tf.cast(rows < batch_size, dtype)


def MicroSpecs(batch_spec: Nest, num_micro_batches: int) -> Nest:
  """The specs of one micro-batch out of those of the mini-batch."""

  def _Spec(x):
    if x is None:
      return None
    size = Size(x.shape[0], num_micro_batches)
    return tf.TensorSpec([size, *x.shape[1:]], x.dtype)

  return tf.nest.map_structure(_Spec, batch_spec)


def At(split: Nest, index: tf.Tensor) -> Nest:
  """Micro-batch `index` of what Split returned."""
  return tf.nest.map_structure(
    lambda x: None if x is None else tf.gather(x, index), split
  )


def IsSum(outputs: Nest) -> list[bool]:
  """For each leaf of Flatten(outputs): is it summed over micro-batches?

  Leaves of a WeightedSum are; other tensors are concatenated.
  """
  if isinstance(outputs, metrics.WeightedSum):
    return [True, True]
  if outputs is None:
    return []
  if isinstance(outputs, dict):
    # As tf.nest does, by sorted keys.
    return [x for key in sorted(outputs) for x in IsSum(outputs[key])]
  if isinstance(outputs, (list, tuple)):
    return [x for item in outputs for x in IsSum(item)]
  return [False]
