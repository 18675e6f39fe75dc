"""What Table 2 is made of: simulated and measured pipelines."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import report, stack_sizes
from tools.benchmarks.paper import (
  fitted_times,
  measured_steps,
  paper_model,
  published,
  simulation,
  stack_costs,
)
from tools.plan import measure, model_costs

MICRO_BATCHES = (1, 4, 32)

# By the paper's name: ours, and the two sizes of micro-batches that are
# measured.
_MODELS = {
  published.AMOEBANET: ('image.imagenet.AmoebaNetD18x256', (1, 4)),
  published.TRANSFORMER: ('lm.table1.TransformerL48', (1, 2)),
}


def OfPaperModel(name: str) -> list[dict[str, Any]]:
  """One of the paper's models on 2, 4 and 8 devices, simulated.

  Args:
    name: of published.THROUGHPUT.

  Returns:
    Rows of simulation.Play, with `relative` and `paper`.
  """
  model, measured = paper_model.Measure(name, *_MODELS[name])
  return _Relative(
    model, measured, (2, 4, 8), MICRO_BATCHES, published.THROUGHPUT[name]
  )


def _Relative(
  model: model_costs.NetCosts,
  measured: Mapping[int, Sequence[partition.CellTime]],
  devices: Sequence[int],
  micro_batches: Sequence[int],
  paper: Mapping[tuple[int, int], float],
) -> list[dict[str, Any]]:
  """Plays all K and M; the first of both is the unit of throughput."""
  pipelines = simulation.Pipelines(devices, micro_batches, model.batch_size)
  rows = simulation.Play(
    model,
    fitted_times.Fit(measured, simulation.Sizes(pipelines)),
    pipelines,
  )
  base = devices[0], micro_batches[0]
  simulation.AddRelative(rows, 'throughput', base, paper)
  return rows


def Scale(
  sizes: stack_sizes.Sizes, layers: int, devices: Sequence[int]
) -> list[dict[str, Any]]:
  """A long stack on many devices, simulated.

  Args:
    sizes: of its blocks.
    layers: how many blocks.
    devices: K.

  Returns:
    Rows of simulation.Play, with `relative`: for M = 32 and for the largest
    K's M = 4 K, from which on the paper finds the bubble negligible.
  """
  most = 4 * max(devices)
  batch = max(most, 32)
  micro_batches = [m for m in dict.fromkeys((32, most)) if batch % m == 0]
  model = stack_costs.NetCosts(
    dataclasses.replace(sizes, layers=layers, batch=batch)
  )
  small = batch // max(micro_batches)
  report.Progress(f'cells of the stack of {layers} blocks')
  measured = {size: model.Measure(size) for size in (small, 4 * small)}
  return _Relative(model, measured, devices, micro_batches, {})


def OnWorkers(sizes: stack_sizes.Sizes, rounds: int) -> list[dict[str, Any]]:
  """The stack on worker processes, measured and simulated.

  Args:
    sizes: of the stack.
    rounds: measured steps of each pipeline.

  Returns:
    Rows of simulation.Play, with `measured_seconds`, `error` of the simulation,
    and both throughputs over that of K = 2, M = 1.
  """
  num_workers = min(max(2, len(os.sched_getaffinity(0))), sizes.layers)
  counts = [k for k in (1, 2, 4, 8) if k <= num_workers]
  played = simulation.Pipelines(counts, MICRO_BATCHES, sizes.batch)
  model = stack_costs.NetCosts(sizes)
  cell_times = measure.CellTimes(
    model, simulation.Sizes(played), report.Progress, num_workers=num_workers
  )
  workers = measure.MeasureWorkers()
  rows = simulation.Play(
    model,
    cell_times,
    played,
    link_speed=workers.link_speed,
    link_latency=workers.link_latency,
    memory_speed=workers.memory_speed,
  )
  for row, seconds in zip(
    rows, _MeasureSteps(played, sizes, rounds), strict=True
  ):
    row['measured_seconds'] = seconds
    row['measured_throughput'] = sizes.batch / seconds
    row['error'] = row['seconds'] / seconds - 1
  simulation.AddRelative(rows, 'throughput', (2, 1), {})
  simulation.AddRelative(
    rows, 'measured_throughput', (2, 1), {}, 'measured_relative'
  )
  return rows


def _MeasureSteps(
  played: Sequence[simulation.Pipeline], sizes: stack_sizes.Sizes, rounds: int
) -> list[float]:
  """Median seconds of a step of each, all measured in turn."""
  with local_workers.LocalWorkers(
    max(p.num_devices for p in played)
  ) as workers:
    devices = cluster.Connect(workers.addresses).devices
    return measured_steps.MedianSeconds(played, sizes, devices, rounds)
