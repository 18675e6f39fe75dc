"""The micro-batch loop: any schedule's table as one `tf.while_loop`.

  row           0  1  2  3  4  5         1F1B, 3 partitions, 2 micro-batches
  partition 0   F0 F1 .  .  B0 B1
  partition 1   .  F0 F1 B0 B1 .
  partition 2   .  .  FB FB .  .

An iteration is a row of the table (loop_table.py): in it a partition runs the
forward pass of one micro-batch, the backward pass of another, both, or nothing.
Constant tables of micro-batch indices say which, so the graph doesn't grow with
the number of micro-batches, nor does it know schedules.

Each partition's part of the body stands under its own `tf.device`. The runtime
cuts the loop along those devices, and each device goes through its rows as fast
as its inputs arrive: nothing waits for the others' clocks. What a partition
sends (outputs, skip connections, gradients) is a loop variable on the
receiver's device, and crosses once. The receiver puts it in a ring of as many
slots as the table needs at once: memory is what the schedule says it is.

One thing at a time on a device: a partition reads its inputs after all that its
device did in the rows before. That bounds memory, and a recomputation still
starts before its gradient has arrived.

The last partition runs a micro-batch's backward pass right after its forward
pass. All sums over micro-batches go in ascending order whatever the schedule:
results are equal to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe import nested_map, weights
from lingvo_gpipe.gpipe import (
  loop_data,
  loop_edges,
  micro_batch,
  ordering,
  ring,
  stage_functions,
)
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.schedules import loop_table

NestedMap = nested_map.NestedMap
Nest = Any


# What a slot may change of the loop's state.
_FORWARD_PARTS = ('sending', 'reports', 'kept', 'forward_times', 'busy_until')
_BACKWARD_PARTS = ('returning', 'sums', 'backward_times', 'busy_until')
_LAST_PARTS = (
  'returning',
  'sums',
  'reports',
  'forward_times',
  'backward_times',
  'busy_until',
)


def _Zeros(spec: Nest) -> Nest:
  """Sums to begin with; half precision would lose small addends."""
  return tf.nest.map_structure(
    lambda s: tf.zeros(s.shape, weights.AtLeastFloat32(s.dtype)), spec
  )


def _Add(sums: Nest, values: Nest) -> Nest:
  return tf.nest.map_structure(
    lambda s, v: s + tf.cast(v, s.dtype), sums, values
  )


def _Clock(after: Sequence[tf.Tensor]) -> tf.Tensor:
  """The device's time once `after` are there."""
  with ordering.Waiting(after):
    return tf.timestamp()


class TrainingLoop:
  """Forward and backward passes of a mini-batch through all stages.

  Args:
    functions: of the stages, from the first to the last.
    data: of each stage.
    inputs: the first stage's inputs, [num_micro_batches, micro_batch, ...].
    table: who does what when.
  """

  def __init__(
    self,
    functions: list[stage_functions.StageFunctions],
    data: list[loop_data.StageData],
    inputs: Nest,
    table: loop_table.LoopTable,
  ):
    self._functions = functions
    self._data = data
    self._inputs = inputs
    self._table = table
    self._num_stages = len(functions)
    self._edges = loop_edges.Edges(functions, table)
    self._devices = sorted({f.stage.device for f in functions})
    self._kept_rings = [
      ring.Ring(self._Device(k), table.Kept(k), f.kept)
      for k, f in enumerate(functions[:-1])
    ]

  def _Device(self, k: int) -> str:
    return self._functions[k].stage.device

  # The state of the loop.

  def _Start(self) -> NestedMap:
    state = NestedMap(row={}, busy_until={}, sums=[], reports=[])
    for device in self._devices:
      with tf.device(device):
        state.row[device] = tf.constant(0)
        state.busy_until[device] = tf.constant(0.0, tf.float64)
    for k, data in enumerate(self._data):
      with tf.device(self._Device(k)):
        state.sums.append([tf.zeros(s.shape, s.dtype) for s in data.gradients])
        state.reports.append(_Zeros(self._Reports(k, self._functions[k].spec)))
    state.forward_times = self._Times(2)
    state.backward_times = self._Times(5)
    state.kept = [x.Create() for x in self._kept_rings]
    self._edges.Start(state)
    return state

  def _Times(self, size: int) -> list[tf.TensorArray]:
    arrays = []
    for functions in self._functions:
      with tf.device(functions.stage.device):
        arrays.append(
          tf.TensorArray(
            tf.float64,
            self._table.schedule.num_micro_batches,
            element_shape=[size],
            clear_after_read=False,
          )
        )
    return arrays

  def _Reports(self, k: int, outputs: stage_lib.StageOutputs) -> NestedMap:
    """What a forward pass reports, to be summed over micro-batches."""
    reports = NestedMap(
      statistics=outputs.statistics,
      aux_losses=outputs.aux_losses,
      metrics=outputs.metrics,
    )
    if k == self._num_stages - 1:
      reports.outputs = loop_data.Metrics(outputs.carried.outputs)
    return reports

  # Running.

  def Run(self) -> loop_data.LoopResult:
    """Runs all rows of the table; see RunTogether."""
    state = self._Start()
    first = self._Device(0)
    # What TensorFlow itself adds to the loop stays off the client, too.
    with tf.device(first):
      (state,) = tf.while_loop(
        lambda state: state.row[first] < self._table.num_rows,
        lambda state: (self._Row(state),),
        (state,),
        # A row ends when the slowest partition has sent; others, whose passes
        # are shorter, are some rows ahead of it then.
        parallel_iterations=max(4, 2 * self._num_stages),
      )
    times = []
    for k in range(self._num_stages):
      forward, backward = state.forward_times[k], state.backward_times[k]
      with tf.device(self._Device(k)):
        times.append(tf.concat([forward.stack(), backward.stack()], 1))
    return loop_data.LoopResult(state.sums, state.reports, times)

  def _Row(self, state: NestedMap) -> NestedMap:
    """One iteration."""
    arrived_before = state.activations
    state = _Copy(state)
    self._edges.Receive(state)
    last = self._num_stages - 1
    forward, backward = self._table.forward, self._table.backward
    for k in range(last):
      self._Slot(k, forward[:, k], state, _FORWARD_PARTS, self._Forward)
    for k in range(last):
      # Of what arrives in a row, backward passes need the gradients only.
      run = functools.partial(self._Backward, arrived_before)
      self._Slot(k, backward[:, k], state, _BACKWARD_PARTS, run)
    self._Slot(last, forward[:, last], state, _LAST_PARTS, self._Both)
    self._edges.Cross(state)
    for device in self._devices:
      with tf.device(device):
        state.row[device] += 1
    return state

  def _Slot(
    self,
    k: int,
    column: np.ndarray,
    state: NestedMap,
    parts: Sequence[str],
    run: Callable[[int, tf.Tensor, NestedMap], None],
  ) -> None:
    """What stage k does in a row: `run`, or nothing.

    Args:
      k: the stage.
      column: [num_rows], the micro-batch for each row, or -1 for nothing.
      state: of the loop; its `parts` that belong to stage k change.
      parts: their names.
      run: called with k, the micro-batch's index, and a state to change.
    """
    device = self._Device(k)
    keys = {
      'busy_until': [device],
      'sending': self._edges.From(k),
      'returning': self._edges.To(k),
    }

    def _Parts(of: NestedMap) -> list[list[Any]]:
      return [[of[part][key] for key in keys.get(part, [k])] for part in parts]

    def _Run() -> list[list[Any]]:
      new = _Copy(state)
      run(k, index, new)
      return _Parts(new)

    with tf.device(device):
      index = tf.gather(tf.constant(column), state.row[device])
      if np.all(column >= 0):
        results = _Run()
      else:
        results = tf.cond(index >= 0, _Run, lambda: _Parts(state))
    for part, values in zip(parts, results, strict=True):
      for key, value in zip(keys.get(part, [k]), values, strict=True):
        state[part][key] = value

  def _Arguments(
    self,
    k: int,
    index: tf.Tensor,
    activations: list[list[tf.TensorArray]],
    busy_until: tf.Tensor,
    *,
    with_received: bool,
  ) -> tuple[stage_functions.Arguments, tf.Tensor]:
    """What stage k reads, once its device is free; and when it was there."""
    data = self._data[k]
    with ordering.Waiting([busy_until]):
      index = tf.identity(index)
      received = None
      if with_received:
        received = self._edges.Received(k, index, activations, self._inputs)
      counted = tf.cast(index, tf.int64) + data.first_micro_batch
      shared = [data.global_step, counted]
      batch = micro_batch.At(data.batch, index)
    start = _Clock([index, *micro_batch.Flatten(received)[0]])
    # The clock is read before anything is computed, not some time among it.
    received = ordering.After([start], received)
    arguments = stage_functions.Arguments(shared, batch, received, data.theta)
    return arguments, start

  def _Forward(self, k: int, index: tf.Tensor, state: NestedMap) -> None:
    """The forward pass of any stage but the last."""
    device = self._Device(k)
    arguments, start = self._Arguments(
      k, index, state.activations, state.busy_until[device], with_received=True
    )
    result = self._functions[k].Forward(arguments)
    state.reports[k] = _Add(state.reports[k], self._Reports(k, result.outputs))
    state.kept[k] = self._kept_rings[k].Write(state.kept[k], index, result.kept)
    end = _Clock([start, *micro_batch.Flatten(result.outputs.carried)[0]])
    self._edges.Send(k, result.outputs.carried, end, state)
    state.busy_until[device] = end
    state.forward_times[k] = state.forward_times[k].write(
      index, tf.stack([start, end])
    )

  def _Backward(
    self, activations, k: int, index: tf.Tensor, state: NestedMap
  ) -> None:
    """The backward pass of any stage but the last."""
    device = self._Device(k)
    functions = self._functions[k]
    arguments, start = self._Arguments(
      k,
      index,
      activations,
      state.busy_until[device],
      with_received=functions.backward_reads_received,
    )
    kept = self._kept_rings[k].Read(state.kept[k], index)
    residuals, recomputed = list(kept), start
    if functions.recomputes:
      residuals = functions.Recompute(arguments, kept)
      recomputed = _Clock([start, *residuals])
    gradients = self._edges.Gradients(k, index, state)
    arrived = [g for flat in gradients.values() for g in flat]
    begin = _Clock([recomputed, *arrived])
    gradients = {
      name: ordering.After([begin], flat) for name, flat in gradients.items()
    }
    result = functions.Backward(arguments, kept, residuals, gradients)
    end, left = self._Return(k, result, begin, state)
    state.backward_times[k] = state.backward_times[k].write(
      index, tf.stack([start, recomputed, begin, end, left])
    )

  def _Both(self, k: int, index: tf.Tensor, state: NestedMap) -> None:
    """Forward and backward pass of the last stage."""
    device = self._Device(k)
    functions = self._functions[k]
    arguments, start = self._Arguments(
      k, index, state.activations, state.busy_until[device], with_received=True
    )
    forward = functions.Forward(arguments, backward_follows=True)
    reports = self._Reports(k, forward.outputs)
    state.reports[k] = _Add(state.reports[k], reports)
    middle = _Clock([start, *tf.nest.flatten(reports.outputs)])
    residuals = ordering.After([middle], forward.residuals)
    result = functions.Backward(arguments, forward.kept, residuals, {})
    end, left = self._Return(k, result, middle, state)
    state.forward_times[k] = state.forward_times[k].write(
      index, tf.stack([start, middle])
    )
    state.backward_times[k] = state.backward_times[k].write(
      index, tf.stack([middle, middle, middle, end, left])
    )

  def _Return(
    self,
    k: int,
    result: stage_functions.StageGradients,
    begin: tf.Tensor,
    state: NestedMap,
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds and sends gradients; returns when it was through, and had sent."""
    for i, gradient in result.weights:
      state.sums[k][i] = loop_data.AddGradient(state.sums[k][i], gradient)
    left = self._edges.Return(
      k, result.received, lambda sent: _Clock([begin, *sent]), state
    )
    end = _Clock([left, *state.sums[k]])
    state.busy_until[self._Device(k)] = end
    return end, left


def RunTogether(loops: Sequence[TrainingLoop]) -> list[loop_data.LoopResult]:
  """Runs loops at the same time.

  Args:
    loops: on devices of their own, or sharing some.

  Returns:
    The result of each.
  """
  # In a function of its own: tf.function would tie loops and iterations
  # together to keep the clock's readings in order.
  run = tf.compat.v1.wrap_function(lambda: [loop.Run() for loop in loops], [])
  return [loop_data.LoopResult(*result) for result in run()]


def _Copy(state: NestedMap) -> NestedMap:
  return tf.nest.map_structure(lambda x: x, state)
