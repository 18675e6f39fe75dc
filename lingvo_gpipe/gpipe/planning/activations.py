"""Which tensors of a forward pass its backward pass needs.

Found in the graph of both, which is never run. These are the tensors that a
device keeps for each micro-batch in flight, or has to compute again.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# Operations whose output is their input's buffer.
ALIASES = frozenset(
  ('ExpandDims', 'Identity', 'Reshape', 'Squeeze', 'StopGradient')
)
# Operations that look at the shape of their input only.
_SHAPE_ONLY = frozenset(('OnesLike', 'Rank', 'Shape', 'Size', 'ZerosLike'))


def Needed(
  operations: list[tf.Operation], gradients: list[Any]
) -> list[tf.Operation]:
  """Those operations that gradients depend on.

  The tape also builds gradients of what nobody watches, such as a mask of
  dropout. TensorFlow prunes them before it runs a graph.

  Args:
    operations: in order of creation.
    gradients: tensors, IndexedSlices or None.

  Returns:
    A part of `operations`, in their order.
  """
  needed = {x.op.name for x in gradients if x is not None}
  for op in reversed(operations):
    if op.name in needed:
      needed.update(x.op.name for x in op.inputs)
      needed.update(x.name for x in op.control_inputs)
  return [op for op in operations if op.name in needed]


def ReadByBackward(
  forward: list[tf.Operation],
  backward: list[tf.Operation],
  *,
  sources: list[tf.Tensor],
  inputs: list[tf.Tensor],
  outputs: list[tf.Tensor],
) -> list[tf.Tensor]:
  """The forward tensors that must be kept; see CellCost.activation_bytes.

  Args:
    forward: operations in order of creation.
    backward: operations of the gradient.
    sources: tensors that are new for each micro-batch. What depends on none of
      them (weights, cast weights, constants) is no activation.
    inputs: of the cell.
    outputs: of the cell.

  Returns:
    Each tensor once.
  """
  varying = {x.op.name for x in sources}
  for op in forward:
    if any(x.op.name in varying for x in op.inputs):
      varying.add(op.name)
  kept = {}
  for op in backward:
    if op.type not in _SHAPE_ONLY:
      kept.update((x.ref(), x) for x in map(_Buffer, op.inputs))
  # An output that is an input handed on is still an input.
  only_outputs = {_Buffer(x).ref() for x in outputs} - {x.ref() for x in inputs}
  names = varying & {op.name for op in forward}
  return [
    x
    for x in kept.values()
    if x.op.name in names and x.ref() not in only_outputs
  ]


def _Buffer(tensor: tf.Tensor) -> tf.Tensor:
  while tensor.op.type in ALIASES:
    tensor = tensor.op.inputs[0]
  return tensor
