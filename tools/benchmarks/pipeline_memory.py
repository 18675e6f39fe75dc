"""Measures the memory that pipelines of a Transformer stack take.

  python -m tools.benchmarks.pipeline_memory --preset=wide_batch \\
      --workers=1,2,4 --micro_batches=4,16 --policies=none,cell,partition

trains each combination of the lists in new worker processes and compares the
peak of their resident memory, less what they had before they got work, with
arithmetic on the shapes of tensors.

  python -m tools.benchmarks.pipeline_memory --preset=wide_model \\
      --search_layers --worker_memory=1.5G --workers=1,2,4 --policies=cell

finds the largest number of blocks, the same number on each worker, that trains
a step when workers may have no more than that memory; first, for comparison,
without pipeline: one worker, one micro-batch, nothing recomputed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from absl import flags

from lingvo_gpipe import user_error
from lingvo_gpipe.workers import process_memory
from tools.benchmarks import (
  command,
  layer_search,
  memory_probe,
  pipeline,
  pipeline_flags,
  report,
  stack_flags,
  stack_sizes,
)

_LAYER_COUNTS = flags.DEFINE_list(
  'layer_counts',
  '',
  'Numbers of blocks to measure. Default: what --layers or the preset says.',
)
_SEARCH_LAYERS = flags.DEFINE_bool(
  'search_layers',
  False,
  'Find the largest number of blocks under --worker_memory.',
)
_WORKER_MEMORY = flags.DEFINE_string(
  'worker_memory',
  '',
  'Resident memory that each worker may have, such as 1.5G; without work it '
  'has about 0.4G. Empty: no limit.',
)
_STEPS = flags.DEFINE_integer('steps', 2, 'Steps to train.', lower_bound=1)
_TIMEOUT = flags.DEFINE_float(
  'timeout',
  1800.0,
  'Seconds for one configuration, its start included.',
  lower_bound=1.0,
)
# Equally many blocks on each worker, so that none of them sets the limit.
flags.set_default(pipeline_flags.CUT, 'equal')


def _PerWorker(values: Sequence[float]) -> str:
  return ' '.join(f'{value / 2**20:.0f}' for value in values)


_CONFIG_COLUMNS = (
  report.Column('num_devices', 'K'),
  report.Column('num_micro_batches', 'M'),
  report.Column('order', 'schedule'),
  report.Column('policy', 'recompute'),
)
_COLUMNS = (
  *_CONFIG_COLUMNS,
  report.Column('layers', 'blocks'),
  report.Column('status', 'outcome'),
  report.Column('peak', 'peak of each worker, MiB', _PerWorker),
  report.Column('arithmetic', 'arithmetic, MiB', _PerWorker),
  report.Column('weights', 'weights', report.Mebibytes),
  report.Column('gradients', 'gradients', report.Mebibytes),
  report.Column('stored', 'stored', report.Mebibytes),
  report.Column('activations', 'activations', report.Mebibytes),
  report.Column('idle', 'idle', report.Mebibytes),
)
_SEARCH_COLUMNS = (
  *_CONFIG_COLUMNS,
  report.Column('layers', 'blocks'),
  report.Column('params', 'parameters', report.Count),
  report.Column('ratio', 'ratio', report.Ratio),
  report.Column('peak', 'peak of each worker, MiB', _PerWorker),
  report.Column('seconds', 's/step', report.Seconds),
)


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
  peak = f', {_PerWorker(row["peak"])} MiB' if 'peak' in row else ''
  detail = f' ({outcome.detail})' if outcome.detail else ''
  report.Progress(
    f'{job.config.name}, {job.sizes.layers} blocks: {outcome.status}'
    f'{peak}{detail}'
  )
  return row


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


def _Measure(
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  memory_limit: int | None,
) -> list[dict[str, Any]]:
  layer_counts = [sizes.layers]
  if _LAYER_COUNTS.value:
    layer_counts = stack_flags.Integers('layer_counts', _LAYER_COUNTS.value)
  return [
    MeasureRow(
      memory_probe.Job(
        config,
        dataclasses.replace(sizes, layers=layers),
        memory_limit,
        _STEPS.value,
      ),
      _TIMEOUT.value,
    )
    for config in configs
    for layers in layer_counts
    if layers >= config.num_partitions
  ]


def _Search(
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  memory_limit: int | None,
) -> list[dict[str, Any]]:
  if memory_limit is None:
    raise user_error.UserError(
      '--search_layers needs --worker_memory, such as --worker_memory=1.5G'
    )
  naive = pipeline.Config(1, 1, cut='equal')
  rows = []
  for config in dict.fromkeys([naive, *configs]):
    rows.append(SearchRow(config, sizes, memory_limit, _TIMEOUT.value))
    if rows[0]['layers']:
      rows[-1]['ratio'] = rows[-1]['layers'] / rows[0]['layers']
  return rows


def Main() -> int:
  """The tool."""
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    if _SEARCH_LAYERS.value:  # As many blocks as there are partitions.
      sizes = dataclasses.replace(sizes, layers=10**6)
    configs = pipeline_flags.Configs(sizes)
    memory_limit = None
    if _WORKER_MEMORY.value:
      memory_limit = process_memory.ParseSize(_WORKER_MEMORY.value)
    if _SEARCH_LAYERS.value:
      columns, rows = _SEARCH_COLUMNS, _Search(configs, sizes, memory_limit)
    else:
      columns, rows = _COLUMNS, _Measure(configs, sizes, memory_limit)
  print(report.Table(columns, rows))
  if stack_flags.OUTPUT.value:
    report.WriteJson(
      stack_flags.OUTPUT.value,
      rows,
      sizes=sizes.ToJson(),
      memory_limit=memory_limit,
    )
  return 0


if __name__ == '__main__':
  command.Run(Main)
