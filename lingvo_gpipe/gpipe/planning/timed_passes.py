"""The seconds that a segment's passes take, measured as the pipeline runs them.

A pass runs many times inside one `tf.while_loop`, as micro-batches do: a call
from Python costs a millisecond or two, as much as the whole pass of a small
cell. Gradients of weights are added up from iteration to iteration, which the
pipeline does as well.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map, weights
from lingvo_gpipe.gpipe import loop_data, micro_batch, ordering, segment
from lingvo_gpipe.gpipe.planning import partition

NestedMap = nested_map.NestedMap
Tensors = list[tf.Tensor]
# (arguments, what it returned before, or zeros) -> what it returns.
Pass = Callable[[segment.Arguments, Tensors], Tensors]
# A number of runs -> what the last one returns.
Loop = Callable[[tf.Tensor], Tensors]

# A loop is as many runs as fill this time, so that its start counts for little.
_LOOP_SECONDS = 0.04
_MAX_RUNS = 200
# There are so many loops, or fewer if they take longer than this.
_MAX_LOOPS = 9
_MAX_SECONDS = 2.0
_MIN_LOOPS = 3

# Small weights: products of random numbers stay finite in deep cells.
_STDDEV = 0.02


def Time(
  traced: segment.Segment,
  shared: dict[str, tf.TensorSpec],
  batch_spec: NestedMap,
) -> partition.CellTime:
  """Measures a segment of one cell on random numbers.

  Args:
    traced: the segment; its device must be of this process.
    shared: {name: TensorSpec} of weights that cells use of each other.
    batch_spec: TensorSpecs of the micro-batch's fields.

  Returns:
    Seconds of a forward pass, and of a backward pass that finds its residuals;
    medians.
  """
  stage = traced.stage
  draw = tf.random.Generator.from_seed(1)

  def _Values(specs: Any) -> Tensors:
    return [_Random(draw, spec) for spec in micro_batch.Flatten(specs)[0]]

  variables = tf.nest.flatten([cell.VariableSpecs() for cell in stage.cells])
  used = [shared[name] for name in stage.used_weights]
  with tf.device(stage.device):
    arguments = segment.Arguments(
      shared=[],
      batch=_Values({name: batch_spec[name] for name in stage.batch_fields}),
      received=_Values(traced.received),
      theta=_Values([_Spec(spec) for spec in [*variables, *used]]),
    )
    gradients = []
    if not traced.is_last:
      gradients = _Values(_Floats(traced.spec.carried))

  def _Forward(arguments: segment.Arguments, before: Tensors) -> Tensors:
    del before
    return micro_batch.Flatten(traced.Forward(arguments))[0]

  def _Both(arguments: segment.Arguments, before: Tensors) -> Tensors:
    outputs, kept = traced.Keep(arguments)
    sent = micro_batch.Flatten(outputs)[0]
    arrived = ordering.After(sent, gradients)
    backward = traced.Backward(arguments, kept, arrived)
    sums = [
      total if gradient is None else loop_data.AddGradient(total, gradient)
      for total, gradient in zip(before, backward.weights, strict=False)
    ]
    return [*sums, *backward.received, *sent]

  outputs = micro_batch.Flatten(traced.spec)[0]
  sums = [
    tf.TensorSpec(spec.shape, weights.AtLeastFloat32(spec.dtype))
    for spec in [*(v for v in variables if v.trainable), *used]
  ]
  returned = [] if traced.is_first else _Floats(traced.received)
  forward, both = _Medians(
    [
      _Loop(_Forward, arguments, outputs, stage.device),
      _Loop(_Both, arguments, [*sums, *returned, *outputs], stage.device),
    ]
  )
  return partition.CellTime(forward, max(both - forward, 0.0))


def _Spec(spec: Any) -> tf.TensorSpec:
  return tf.TensorSpec(spec.shape, spec.dtype)


def _Floats(specs: Any) -> list[tf.TensorSpec]:
  return segment.Floats(micro_batch.Flatten(specs)[0])


def _Random(draw: tf.random.Generator, spec: tf.TensorSpec) -> tf.Tensor:
  """Small numbers; whole ones are 0, as an id or a label may be."""
  if not spec.dtype.is_floating:
    return tf.zeros(spec.shape, spec.dtype)
  values = draw.normal(spec.shape, stddev=_STDDEV, dtype=tf.float32)
  return tf.cast(values, spec.dtype)


def _Loop(
  run: Pass,
  arguments: segment.Arguments,
  returns: Sequence[tf.TensorSpec],
  device: str,
) -> Loop:
  """A function that runs a pass so many times, one after the other."""

  def _Body(index: tf.Tensor, before: Tensors) -> tuple[tf.Tensor, Tensors]:
    number = tf.cast(index, tf.int64)
    # What depends on nothing that changes may be computed once for all.
    batch, received = ordering.After(
      [index], [arguments.batch, arguments.received]
    )
    changed = segment.Arguments(
      [number, number], batch, received, arguments.theta
    )
    return index + 1, run(changed, before)

  @tf.function(autograph=False)
  def _Runs(count: tf.Tensor) -> Tensors:
    with tf.device(device):
      zeros = [tf.zeros(spec.shape, spec.dtype) for spec in returns]
      return tf.while_loop(
        lambda index, unused_before: index < count,
        _Body,
        (tf.constant(0), zeros),
        parallel_iterations=1,
      )[1]

  return _Runs


def _Medians(loops: Sequence[Loop]) -> list[float]:
  """Median seconds of a run of each, measured in turns."""
  counts = []
  for loop in loops:
    # The first call traces, the second one's processor caches are warm.
    seconds = min(_Seconds(loop, 1) for _ in range(3))
    counts.append(min(max(round(_LOOP_SECONDS / seconds), 1), _MAX_RUNS))
  measured: list[list[float]] = [[] for _ in loops]
  started = time.perf_counter()
  while len(measured[0]) < _MAX_LOOPS and (
    len(measured[0]) < _MIN_LOOPS
    or time.perf_counter() - started < _MAX_SECONDS
  ):
    for of_one, loop, count in zip(measured, loops, counts, strict=True):
      of_one.append(_Seconds(loop, count) / count)
  return [statistics.median(of_one) for of_one in measured]


def _Seconds(loop: Loop, count: int) -> float:
  number = tf.constant(count)
  tf.test.experimental.sync_devices()
  begin = time.perf_counter()
  loop(number)
  tf.test.experimental.sync_devices()
  return time.perf_counter() - begin
