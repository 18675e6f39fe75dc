"""Where a training step ceased to be finite: which cell of which micro-batch.

A step whose gradients are not finite changes nothing, so it can be done again:
it is a function of mini-batch, step and weights. Here it is done in pieces,

  mini-batch -> weights -> cell 0 -> cell 1 -> ... -> gradients, last cell first

and the first piece with a number that is infinite or not a number is named.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, shared_weights
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap

_MAX_LISTED = 5


def Explain(net: gpipe.GPipe, batch: NestedMap, global_step: int) -> str:
  """Does a training step once more, to find where numbers are not finite.

  Builds graphs of its own, which takes seconds.

  Args:
    net: with the weights that the step was done with.
    batch: the mini-batch, NestedMap of tensors [batch, ...].
    global_step: how many steps came before.

  Returns:
    A sentence without a full stop.
  """
  batch = NestedMap(batch)
  step = tf.constant(global_step, tf.int64)
  return (
    _InBatch(batch)
    or _InWeights(net)
    or _InForward(net, batch, step)
    or _InGradients(net, batch, step)
  )


def _InBatch(batch: NestedMap) -> str:
  names = [
    name for name, value in batch.items() if not bool(_AllFinite(value).numpy())
  ]
  if not names:
    return ''
  return f'the mini-batch itself is not finite, in {_Listed(names)}'


def _InWeights(net: gpipe.GPipe) -> str:
  """Tells of weights, moving moments among them."""

  @_AsFunction(net)
  def _Flags():
    flags = []
    for variable in tf.nest.flatten(net.vars):
      with tf.device(variable.device):
        flags.append(_AllFinite(tf.convert_to_tensor(variable)))
    return flags

  names = _Paths(net, [not finite for finite in _Read(_Flags())])
  return f'weights are not finite: {_Listed(names)}' if names else ''


def _InForward(net: gpipe.GPipe, batch: NestedMap, step: tf.Tensor) -> str:
  """Goes through the cells with each micro-batch in turn."""
  divided = net.Divide(batch)
  for replica in range(divided.num_replicas):
    stages = [
      dataclasses.replace(stage, padded_from=divided.padded_from)
      for stage in net.Stages(replica)
    ]
    first = replica * divided.num_micro_batches

    @_AsFunction(net)
    def _Flags(batch, step, i, stages=stages, replica=replica, first=first):
      rows = divided.Rows(batch, replica)
      with tf.device(stages[0].device):
        inputs = micro_batch.At(
          net.feeding.FirstInputs(stages[0], divided, rows), i
        )
      fields = []
      for stage in stages:
        with tf.device(stage.device):
          fields.append(
            micro_batch.At(net.feeding.Fields(stage, divided, rows), i)
          )
      return _CellFlags(net, stages, inputs, fields, step, first + i)

    for i in range(divided.num_micro_batches):
      flags = _Read(_Flags(batch, step, tf.constant(i)))
      if not all(flags):
        return (
          'the first outputs that are not finite are those of '
          f'{_Cell(stages, flags.index(False))}, in micro-batch '
          f'{first + i}'
        )
  return ''


def _CellFlags(
  net: gpipe.GPipe,
  stages: list[stage_lib.Stage],
  inputs: Any,
  fields: list[NestedMap],
  step: tf.Tensor,
  index: tf.Tensor,
) -> list[tf.Tensor]:
  """Whether what each cell returns and reports is finite; bool scalars."""
  lenders = shared_weights.Find(net.cells)
  on_the_way = stage_lib.OnTheWay(stage_lib.Carried(inputs, {}))
  flags = []
  for stage, of_stage in zip(stages, fields, strict=True):
    for i in range(len(stage.cells)):
      cell = stage.Slice(i, i + 1)
      with tf.device(stage.device):
        outputs = cell.FProp(
          shared_weights.ThetaOf(cell, net.theta.cells, lenders),
          on_the_way.Receive(cell),
          of_stage,
          do_eval=False,
          global_step=step,
          micro_batch_index=index,
        )
        flags.append(_AllFinite(outputs))
      on_the_way.Send(outputs.carried)
  return flags


def _InGradients(net: gpipe.GPipe, batch: NestedMap, step: tf.Tensor) -> str:
  """Tells of gradients; they come from the last cell to the first."""

  @_AsFunction(net)
  def _Largest(batch, step):
    largest = []
    for gradient in tf.nest.flatten(net.ComputeGradients(batch, step).grads):
      if gradient is None:
        largest.append(tf.constant(0.0))
        continue
      gradient = tf.convert_to_tensor(gradient)
      with tf.device(gradient.device):
        size = tf.reduce_max(tf.abs(gradient), axis=None)
        finite = tf.reduce_all(tf.math.is_finite(gradient))
        # The maximum of numbers and NaN may be any of them.
        size = tf.cast(size, tf.float32)
        largest.append(tf.where(finite, size, float('inf')))
    return largest

  largest = _Read(_Largest(batch, step))
  wrong = [not math.isfinite(x) for x in largest]
  names = _Paths(net, wrong)
  if names:
    stages = net.Stages()
    flags = iter(wrong)
    cells = [
      i
      for i, cell in enumerate(net.cells)
      if any([next(flags) for _ in tf.nest.flatten(cell.VariableSpecs())])
    ]
    return (
      'all outputs are finite, but gradients are not, first those of '
      f'{_Cell(stages, cells[-1])}: {_Listed(names)}'
    )
  k = max(range(len(largest)), key=largest.__getitem__)
  (name,) = _Paths(net, [i == k for i in range(len(largest))])
  return (
    'all outputs and gradients are finite one by one; sums of their squares '
    'are not, or were not in the step. The largest gradient, '
    f'{largest[k]:.3g}, is that of {name}'
  )


def _AsFunction(net: gpipe.GPipe) -> Callable[[Callable], Callable]:
  """A decorator: a tf.function whose small operations stay off the client."""

  def _Decorate(function):
    def _Function(*args):
      with tf.device(net.Stages()[0].device):
        return function(*args)

    return tf.function(_Function, autograph=False)

  return _Decorate


def _AllFinite(values: Any) -> tf.Tensor:
  """Whether all floating point numbers of a nest are finite; bool scalar."""
  flags = [
    tf.reduce_all(tf.math.is_finite(x))
    for x in tf.nest.flatten(values)
    if tf.is_tensor(x) and x.dtype.is_floating
  ]
  return tf.reduce_all(tf.stack(flags)) if flags else tf.constant(True)


def _Read(scalars: list[tf.Tensor]) -> list[Any]:
  return [x.numpy() for x in scalars]


def _Paths(net: gpipe.GPipe, wanted: list[bool]) -> list[str]:
  specs = tf.nest.flatten([cell.VariableSpecs() for cell in net.cells])
  return [s.path for s, w in zip(specs, wanted, strict=True) if w]


def _Cell(stages: list[stage_lib.Stage], index: int) -> str:
  stage = next(s for s in stages if index < s.first_cell + len(s.cells))
  return stage.Describe(index)


def _Listed(names: list[str]) -> str:
  rest = len(names) - _MAX_LISTED
  return ', '.join(names[:_MAX_LISTED]) + (f' and {rest} more' * (rest > 0))
