"""Residuals: which tensors of a forward pass its backward pass needs kept.

A traced graph holds the forward operations of some cells and after them those
of the gradient. `Split` walks from the gradients back into the forward part and
decides, tensor by tensor, what stands between the two halves:

  residual    a value of the forward pass that has to be kept or recomputed
  constant    follows from a static shape
  neither     views such as Reshape, what weights alone determine, and results
              of operations whose state cannot leave a graph (a loop's stacks):
              the backward pass computes them again from what they came from
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from lingvo_gpipe.gpipe.planning import activations

# Operations whose result follows from the static shape of their input.
_OF_SHAPE: dict[str, Callable[[list[int], Any], np.ndarray]] = {
  'Shape': lambda shape, dtype: np.array(shape, dtype),
  'Size': lambda shape, dtype: np.array(np.prod(shape), dtype),
  'Rank': lambda shape, dtype: np.array(len(shape), dtype),
}
_UNKEEPABLE = (tf.variant, tf.resource)


class Residuals(NamedTuple):
  """What stands between a forward and a backward pass.

  Attributes:
    kept: tensors that the backward pass reads and the forward pass computes.
    feeds: those placeholders that the backward pass reads itself.
    constants: [(tensor, value)] that the backward pass may be given instead.
  """

  kept: list[tf.Tensor]
  feeds: list[tf.Tensor]
  constants: list[tuple[tf.Tensor, np.ndarray]]


def Split(
  fetches: Sequence[tf.Tensor],
  *,
  forward: Sequence[tf.Operation],
  feeds: Sequence[tf.Tensor],
  varying: Sequence[tf.Tensor],
) -> Residuals:
  """Splits a graph into forward and backward pass.

  Args:
    fetches: what the backward pass computes.
    forward: operations of the forward pass.
    feeds: all placeholders of the graph.
    varying: those of `feeds` that differ between micro-batches. What depends on
      none of them (cast weights, constants) is computed again, not kept.

  Returns:
    The Residuals, in a fixed order.
  """
  cuttable = {
    op
    for op in _Reachable(varying, forward)
    if op.type not in activations.ALIASES
    and not any(x.dtype in _UNKEEPABLE for x in op.outputs)
  }
  fed = {x.ref() for x in feeds}
  kept, read, constants = {}, {}, {}

  def _Note(x: tf.Tensor) -> bool:
    """Whether the walk goes on through x."""
    if x.ref() in fed:
      read[x.ref()] = x
    elif x.op.type in _OF_SHAPE and x.op.inputs[0].shape.is_fully_defined():
      shape, dtype = x.op.inputs[0].shape.as_list(), x.dtype.as_numpy_dtype
      constants[x.ref()] = (x, _OF_SHAPE[x.op.type](shape, dtype))
    elif x.op in cuttable:
      kept[x.ref()] = x
    else:
      return True
    return False

  _Walk(fetches, _Note)
  return Residuals(
    _InOrder(kept.values()),
    [x for x in feeds if x.ref() in read],
    list(constants.values()),
  )


def _InOrder(tensors: Iterable[tf.Tensor]) -> list[tf.Tensor]:
  """By creation, so that two traces of the same cells agree."""
  return sorted(tensors, key=lambda x: (x.op._id, x.value_index))  # noqa: SLF001


class Between(NamedTuple):
  """A part of a graph.

  Attributes:
    operations: what has to run.
    feeds: those of the given feeds that it reads, in their order.
  """

  operations: list[tf.Operation]
  feeds: list[tf.Tensor]


def FindBetween(
  fetches: Sequence[tf.Tensor], feeds: Sequence[tf.Tensor]
) -> Between:
  """The part of a graph that computes `fetches` from `feeds`."""
  fed = {x.ref() for x in feeds}
  used = set()

  def _Note(x: tf.Tensor) -> bool:
    """Whether the walk goes on through x."""
    if x.ref() in fed:
      used.add(x.ref())
    return x.ref() not in fed

  operations = _Walk(fetches, _Note)
  return Between(
    sorted(operations, key=lambda op: op._id),  # noqa: SLF001
    [x for x in feeds if x.ref() in used],
  )


def _Walk(
  fetches: Sequence[tf.Tensor], passes: Callable[[tf.Tensor], bool]
) -> set[tf.Operation]:
  """The operations behind `fetches`, from results back to inputs.

  Args:
    fetches: where to begin.
    passes: called with each tensor that is met: whether to go on through it.

  Returns:
    The operations.
  """
  seen = set()
  pending = [x.op for x in fetches if passes(x)]
  while pending:
    op = pending.pop()
    if op not in seen:
      seen.add(op)
      pending += [x.op for x in op.inputs if passes(x)]
      for control in op.control_inputs:
        # A list: each of its results is met.
        if all([passes(x) for x in control.outputs]):
          pending.append(control)
  return seen


def _Reachable(
  sources: Sequence[tf.Tensor], ops: Sequence[tf.Operation]
) -> set[tf.Operation]:
  """Those of `ops`, given in order of creation, that depend on `sources`."""
  reached = {x.op for x in sources}
  for op in ops:
    if any(x.op in reached for x in op.inputs):
      reached.add(op)
  return reached
