"""Measures how long pipelines of a Transformer stack take for a step.

  python -m tools.benchmarks.pipeline_speed --workers=1,2 --micro_batches=8 \\
      --schedules=gpipe,1f1b --policies=none,partition

Each device is a worker process of this machine, on a core of its own. All
combinations of the lists stand ready in one set of processes and are measured
in turn. The bound is what the schedule allows: a block's forward pass takes 1
unit, its backward pass 2, a recomputation 1, all else nothing. The bubble is
the share of the step in which devices waited, by their own clocks.
"""

from __future__ import annotations

import statistics
from typing import Any

from absl import flags

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.gpipe.timelines import timeline
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import (
  command,
  harness,
  pipeline,
  pipeline_flags,
  report,
  stack_flags,
  stack_sizes,
  theory,
  timed_steps,
  transformer_stack,
)

_UNROLLED = flags.DEFINE_bool(
  'unrolled',
  False,
  'Also measure one partition without the loop: the same stage functions, once '
  'for each micro-batch in the graph.',
)
_WARMUPS = flags.DEFINE_integer(
  'warmups', 1, 'Steps before these, besides the first one.', lower_bound=0
)

_COLUMNS = (
  *timed_steps.CONFIG_COLUMNS,
  report.Column('blocks', 'blocks', lambda x: '+'.join(map(str, x))),
  *timed_steps.TIME_COLUMNS,
  report.Column('bound', 'bound', report.Ratio),
  report.Column('efficiency', 'efficiency', report.Percent),
  report.Column('bubble', 'bubble', report.Percent),
  report.Column('plan', 'plan s', report.Ratio),
  report.Column('trace', 'trace s', report.Ratio),
  report.Column('first_run', 'first run s', report.Ratio),
  report.Column('nodes', 'nodes', report.Count),
  timed_steps.LOSS_COLUMN,
)


def Measure(
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  devices: tuple[str, ...],
  *,
  rounds: int,
  warmups: int,
  learning_rate: float,
) -> list[dict[str, Any]]:
  """Builds all pipelines, and measures them in turn.

  Args:
    configs: which.
    sizes: of the stack.
    devices: of workers, as many as any config needs.
    rounds: measured steps of each.
    warmups: steps before these.
    learning_rate: of SGD.

  Returns:
    A row of the table for each config.
  """
  pipelines = {}
  for i, config in enumerate(configs):
    built = pipeline.Pipeline(
      config, sizes, devices, learning_rate=learning_rate
    )
    report.Progress(
      f'{i + 1}/{len(configs)} {config.name}: first step after '
      f'{sum(built.first_step):.1f} s, loss {built.first_result.loss:.6f}'
    )
    pipelines[config] = built
  samples = harness.Alternate(
    {config: built.Step for config, built in pipelines.items()},
    rounds=rounds,
    warmups=warmups,
    progress=report.Progress,
  )
  rows = [
    _Row(built, samples[config], sizes) for config, built in pipelines.items()
  ]
  _Compare(rows)
  transformer_stack.CheckLosses({row['name']: row['loss'] for row in rows})
  return rows


def _Row(
  built: pipeline.Pipeline,
  samples: list[harness.Sample],
  sizes: stack_sizes.Sizes,
) -> dict[str, Any]:
  """What one configuration alone says."""
  config = built.config
  row = timed_steps.Row(config, samples, sizes)
  blocks = built.blocks
  bubble = None
  if not config.unrolled:
    bubble = statistics.median(
      timeline.FromTimes(
        s.result.times,
        devices=built.plan.devices,
        schedule=config.schedule,
        policies=config.policies,
      ).bubble
      for s in samples
    )
  return {
    **row,
    'blocks': blocks,
    'flops_per_second': sizes.flops_per_step / row['seconds'],
    'bound': theory.SpeedupBound(
      config.MakeSchedule(), blocks, config.policies
    ),
    'bubble': bubble,
    **built.first_step._asdict(),
    'nodes': built.num_nodes,
    'loss': samples[-1].result.loss,
  }


def _Compare(rows: list[dict[str, Any]]) -> None:
  """Adds the speed-up over one partition and the share of its bound."""
  alone = {
    (row['num_micro_batches'], row['policy']): row['seconds']
    for row in rows
    if row['num_devices'] == 1 and not row['unrolled']
  }
  for row in rows:
    # A mixed policy is compared with one partition of the last one's policy.
    key = (row['num_micro_batches'], row['policy'].split('+')[-1])
    if key in alone:
      row['speedup'] = alone[key] / row['seconds']
      row['efficiency'] = row['speedup'] / row['bound']


def Main() -> int:
  """The tool."""
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    configs = pipeline_flags.Configs(sizes, unrolled=_UNROLLED.value)
  num_workers = max(config.num_devices for config in configs)
  report.Progress(f'{len(configs)} configurations on {num_workers} workers')
  with local_workers.LocalWorkers(num_workers) as workers:
    rows = Measure(
      configs,
      sizes,
      cluster.Connect(workers.addresses).devices,
      rounds=timed_steps.ROUNDS.value,
      warmups=_WARMUPS.value,
      learning_rate=pipeline_flags.LEARNING_RATE.value,
    )
    pipeline.FreeUnused()
  print(report.Table(_COLUMNS, rows))
  timed_steps.WriteOutput(rows, sizes)
  return 0


if __name__ == '__main__':
  command.Run(Main)
