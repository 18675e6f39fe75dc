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
from typing import Any

from absl import flags

from lingvo_gpipe import user_error
from lingvo_gpipe.workers import process_memory
from tools.benchmarks import (
  command,
  memory_probe,
  memory_search,
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
  report.Column('peak', 'peak of each worker, MiB', memory_search.PerWorker),
  report.Column('arithmetic', 'arithmetic, MiB', memory_search.PerWorker),
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
  report.Column('peak', 'peak of each worker, MiB', memory_search.PerWorker),
  report.Column('seconds', 's/step', report.Seconds),
)


def _Measure(
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  memory_limit: int | None,
) -> list[dict[str, Any]]:
  layer_counts = [sizes.layers]
  if _LAYER_COUNTS.value:
    layer_counts = stack_flags.Integers('layer_counts', _LAYER_COUNTS.value)
  return [
    memory_search.MeasureRow(
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
  return memory_search.SearchRows(configs, sizes, memory_limit, _TIMEOUT.value)


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
