"""Measured times of cells, for cuts by time (--profile_cells).

Each kind of cell runs alone, on random data and weights, on one device: a
forward pass, and a forward pass with its backward pass, in turns. Cells that
differ in nothing but their names are measured once. Counted FLOPs take no
notice of how fast a kernel is; this does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import base_layer, nested_map
from lingvo_gpipe.gpipe import micro_batch, segment
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.planning import cost, partition

NestedMap = nested_map.NestedMap

# A cell runs so often, or for so many seconds if that is less.
_MAX_RUNS = 9
_MAX_SECONDS = 2.0
_MIN_RUNS = 3

# Small weights: products of random numbers stay finite in deep cells.
_STDDEV = 0.02


def Measure(
  cells: Sequence[base_layer.BaseLayer],
  inputs: stage_lib.OnTheWay,
  batch_spec: NestedMap,
  shared: dict[str, tf.TensorSpec],
  device: str,
) -> list[partition.CellTime]:
  """Seconds of each cell for one micro-batch.

  Args:
    cells: the layers, each taking what the one before it returns; the last one
      returns the loss.
    inputs: TensorSpecs of one micro-batch, what cell 0 receives.
    batch_spec: TensorSpecs of the micro-batch's fields.
    shared: {name: TensorSpec} of weights that cells use of each other.
    device: of the first partition. A device of another process is not used: its
      kind on this one measures instead.

  Returns:
    Forward and backward seconds, medians.
  """
  # By kind of cell: its time, and the specs of what it sends.
  measured: dict[Any, tuple[partition.CellTime, stage_lib.Carried]] = {}
  times = []
  device = LocalDevice(device)
  started = time.monotonic()
  for index, cell in enumerate(cells):
    stage = stage_lib.Stage(min(index, 1), index, (cell,), device)
    received = inputs.Receive(stage)
    is_last = index == len(cells) - 1
    key = (cost.CacheKey(cell, received, batch_spec), index == 0, is_last)
    if key not in measured:
      traced = segment.Segment(
        stage,
        received,
        NestedMap({name: batch_spec[name] for name in stage.batch_fields}),
        shared=shared,
        is_first=index == 0,
        is_last=is_last,
      )
      seconds = _Time(traced, shared, batch_spec)
      measured[key] = seconds, traced.spec.carried
      logging.info(
        'profile_cells: %s forward %.2f ms, backward %.2f ms',
        cell.path,
        1e3 * seconds.forward,
        1e3 * seconds.backward,
      )
    seconds, carried = measured[key]
    times.append(seconds)
    inputs.Send(carried)
  logging.info(
    'profile_cells: %d kinds of cells among %d, in %.1f s',
    len(measured),
    len(cells),
    time.monotonic() - started,
  )
  return times


def LocalDevice(device: str) -> str:
  """A device of this process, of the same kind if it has one."""
  spec = tf.DeviceSpec.from_string(device)
  kind = spec.device_type or 'CPU'
  if not tf.config.list_logical_devices(kind):
    kind = 'CPU'
  return f'/device:{kind}:0'


def _Time(
  traced: segment.Segment,
  shared: dict[str, tf.TensorSpec],
  batch_spec: NestedMap,
) -> partition.CellTime:
  stage = traced.stage
  draw = tf.random.Generator.from_seed(1)

  def _Values(specs: Any) -> list[tf.Tensor]:
    return [_Random(draw, spec) for spec in micro_batch.Flatten(specs)[0]]

  with tf.device(stage.device):
    index = tf.constant(0, tf.int64)
    arguments = segment.Arguments(
      shared=[index, index],
      batch=_Values({name: batch_spec[name] for name in stage.batch_fields}),
      received=_Values(traced.received),
      theta=_Values(
        [
          [
            tf.TensorSpec(spec.shape, spec.dtype)
            for spec in tf.nest.flatten(stage.cells[0].VariableSpecs())
          ],
          [shared[name] for name in stage.used_weights],
        ]
      ),
    )
    gradients = []
    if not traced.is_last:
      sent = micro_batch.Flatten(traced.spec.carried)[0]
      gradients = _Values(segment.Floats(sent))

  def _Forward() -> Any:
    return traced.Forward(arguments)

  def _Both() -> Any:
    _, kept = traced.Keep(arguments)
    return traced.Backward(arguments, kept, gradients)

  forward, both = _Medians([_Forward, _Both])
  return partition.CellTime(forward, max(both - forward, 0.0))


def _Random(draw: tf.random.Generator, spec: tf.TensorSpec) -> tf.Tensor:
  """Small numbers; whole ones are 0, as an id or a label may be."""
  if not spec.dtype.is_floating:
    return tf.zeros(spec.shape, spec.dtype)
  values = draw.normal(spec.shape, stddev=_STDDEV, dtype=tf.float32)
  return tf.cast(values, spec.dtype)


def _Medians(runs: Sequence[Callable[[], Any]]) -> list[float]:
  """Median seconds of each, run in turns."""
  for run in runs:
    run()
  seconds: list[list[float]] = [[] for _ in runs]
  started = time.perf_counter()
  while len(seconds[0]) < _MAX_RUNS and (
    len(seconds[0]) < _MIN_RUNS or time.perf_counter() - started < _MAX_SECONDS
  ):
    for of_one, run in zip(seconds, runs, strict=True):
      tf.test.experimental.sync_devices()
      begin = time.perf_counter()
      run()
      tf.test.experimental.sync_devices()
      of_one.append(time.perf_counter() - begin)
  return [statistics.median(of_one) for of_one in seconds]
