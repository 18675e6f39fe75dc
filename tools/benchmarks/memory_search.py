"""What configurations take of memory, and the largest that fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from lingvo_gpipe import user_error
from tools.benchmarks import (
  layer_search,
  memory_probe,
  pipeline,
  report,
  stack_sizes,
)


def PerWorker(values: Sequence[float]) -> str:
  """Bytes of each worker as whole MiB with blanks between."""
  return ' '.join(f'{value / 2**20:.0f}' for value in values)


def MeasureRow(job: memory_probe.Job, timeout: float) -> dict[str, Any]:
  """Trains a configuration.

  Args:
    job: which.
    timeout: in seconds.

  Returns:
    A row of the table. The parts of the arithmetic are those of the worker that
    takes most by it.
  """
  outcome = memory_probe.Run(job, timeout=timeout)
  row = {
    **dataclasses.asdict(job.config),
    'order': job.config.order,
    'layers': job.sizes.layers,
    'status': outcome.status,
    'detail': outcome.detail,
  }
  if outcome.status == memory_probe.TRAINED:
    totals = [sum(m.values()) for m in outcome.arithmetic]
    # A device may hold several partitions.
    num_workers = len(outcome.idle)
    row |= {
      'peak': outcome.grown,
      'arithmetic': [sum(totals[w::num_workers]) for w in range(num_workers)],
      **outcome.arithmetic[totals.index(max(totals))],
      'idle': max(outcome.idle),
      'blocks': outcome.blocks,
      'seconds': outcome.seconds,
      'loss': outcome.loss,
    }
  peak = f', {PerWorker(row["peak"])} MiB' if 'peak' in row else ''
  detail = f' ({outcome.detail})' if outcome.detail else ''
  report.Progress(
    f'{job.config.name}, {job.sizes.layers} blocks: {outcome.status}'
    f'{peak}{detail}'
  )
  return row


def SearchRows(
  configs: Iterable[pipeline.Config],
  sizes: stack_sizes.Sizes,
  memory_limit: int,
  timeout: float,
) -> list[dict[str, Any]]:
  """Finds the largest numbers of blocks, first without pipeline.

  Without pipeline is one worker, one micro-batch, nothing recomputed.

  Args:
    configs: the pipelines.
    sizes: see SearchRow.
    memory_limit: see SearchRow.
    timeout: see SearchRow.

  Returns:
    Rows of SearchRow, with `ratio`, the blocks over those of the first.
  """
  naive = pipeline.Config(1, 1, cut='equal')
  rows = []
  for config in dict.fromkeys([naive, *configs]):
    rows.append(SearchRow(config, sizes, memory_limit, timeout))
    if rows[0]['layers']:
      rows[-1]['ratio'] = rows[-1]['layers'] / rows[0]['layers']
  return rows


def SearchRow(
  config: pipeline.Config,
  sizes: stack_sizes.Sizes,
  memory_limit: int,
  timeout: float,
) -> dict[str, Any]:
  """Finds the largest number of blocks of a configuration.

  Args:
    config: the configuration.
    sizes: of the stack; its number of blocks does not matter.
    memory_limit: bytes of each worker.
    timeout: of one trial, in seconds.

  Returns:
    A row of the table.
  """
  rows = {}

  def _Try(layers_of_each: int) -> float | None:
    layers = layers_of_each * config.num_partitions
    job = memory_probe.Job(
      config, dataclasses.replace(sizes, layers=layers), memory_limit
    )
    row = MeasureRow(job, timeout)
    if row['status'] == memory_probe.FAILED:
      raise user_error.TrainingError(f'{config.name}: {row["detail"]}')
    if row['status'] == memory_probe.OUT_OF_MEMORY:
      return None
    rows[layers_of_each] = row
    return max(row['peak']) + row['idle']

  found = layer_search.LargestFitting(_Try, memory_limit)
  layers = found * config.num_partitions
  return {
    **rows.get(found, dataclasses.asdict(config)),
    'order': config.order,
    'layers': layers,
    'params': dataclasses.replace(sizes, layers=layers).params,
  }
