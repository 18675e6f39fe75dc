"""Measured times of cells, for cuts by time (--profile_cells).

Each kind of cell runs alone, on random data and weights, on one device: see
timed_passes.py. Cells that differ in nothing but their names are measured once.
Counted FLOPs take no notice of how fast a kernel is; this does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import base_layer, nested_map
from lingvo_gpipe.gpipe import segment
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.planning import cost, partition, timed_passes

NestedMap = nested_map.NestedMap


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
      seconds = timed_passes.Time(traced, shared, batch_spec)
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
