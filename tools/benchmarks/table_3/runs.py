"""Pipelines over slow links for Table 3, simulated and measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tools.benchmarks import emulated_hosts, report, stack_sizes
from tools.benchmarks.paper import (
  fitted_times,
  paper_model,
  published,
  simulation,
  stack_costs,
)
from tools.benchmarks.table_3 import host_workers
from tools.plan import measure

# By the paper's name: ours, and the two sizes of micro-batches that are
# measured.
_MODELS = {
  'AmoebaNet-D (18, 128)': ('image.imagenet.AmoebaNetD18x128', (1, 4)),
  'Transformer-24': ('lm.table1.TransformerL24', (1, 2)),
}
_DEVICES = (2, 4, 8)


def OfPaperModel(
  name: str, bandwidths: Sequence[float], num_micro_batches: int
) -> list[dict[str, Any]]:
  """One of the paper's models, simulated.

  Args:
    name: of published.SLOW_LINK_THROUGHPUT.
    bandwidths: of a link, bits a second.
    num_micro_batches: M.

  Returns:
    Rows of simulation.Play: first over links that take no time, without
    `bandwidth`; with `relative`, the throughput over that of the first row, and
    `paper`, which knows of one kind of link only.
  """
  model, measured = paper_model.Measure(name, *_MODELS[name])
  pipelines = simulation.Pipelines(
    _DEVICES, [num_micro_batches], model.batch_size
  )
  cell_times = fitted_times.Fit(measured, simulation.Sizes(pipelines))
  rows = simulation.Play(model, cell_times, pipelines)
  for bandwidth in bandwidths:
    slow = simulation.Play(
      model, cell_times, pipelines, link_speed=bandwidth / 8
    )
    rows += [{'bandwidth': bandwidth, **row} for row in slow]
  for row in rows:
    row['relative'] = row['throughput'] / rows[0]['throughput']
  for row, k in zip(rows, _DEVICES, strict=False):
    row['paper'] = published.SLOW_LINK_THROUGHPUT[name][k]
  return rows


def OnHosts(
  sizes: stack_sizes.Sizes,
  bandwidths: Sequence[float],
  num_micro_batches: int,
  rounds: int,
) -> list[dict[str, Any]]:
  """The stack on one and on two emulated hosts, measured and simulated.

  Args:
    sizes: of the stack.
    bandwidths: of a link, bits a second.
    num_micro_batches: M.
    rounds: measured steps of each pipeline.

  Returns:
    Rows of simulation.Play, with `bandwidth`, `measured_seconds`, `error` of
    the simulation, and both speed-ups over K = 1.

  Raises:
    UserError: where hosts cannot be emulated.
  """
  model = stack_costs.NetCosts(sizes)
  pipelines = simulation.Pipelines([1, 2], [num_micro_batches], sizes.batch)
  cell_times = measure.CellTimes(
    model, simulation.Sizes(pipelines), report.Progress, num_workers=2
  )
  workers = measure.MeasureWorkers()
  rows = []
  for bandwidth in bandwidths:
    report.Progress(f'two hosts, links of {bandwidth / 1e6:.0f} Mbit/s')
    played = simulation.Play(
      model,
      cell_times,
      pipelines,
      # A message passes the links of two hosts, one after the other, which
      # takes no longer than one for a stream of packets.
      link_speed=min(bandwidth / 8, workers.link_speed),
      link_latency=workers.link_latency,
      memory_speed=workers.memory_speed,
    )
    with emulated_hosts.EmulatedHosts(3, bits_per_second=bandwidth) as hosts:
      seconds = host_workers.MeasureSteps(
        hosts,
        host_workers.Job(
          [dataclasses.asdict(p) for p in pipelines],
          dataclasses.asdict(sizes),
          rounds,
        ),
      )
    for row, measured in zip(played, seconds, strict=True):
      rows.append(
        {
          'bandwidth': bandwidth,
          **row,
          'measured_seconds': measured,
          'error': row['seconds'] / measured - 1,
          'speedup': played[0]['seconds'] / row['seconds'],
          'measured_speedup': seconds[0] / measured,
        }
      )
  return rows
