"""Measures this project's pipelines beside those of other frameworks.

  python -m tools.benchmarks.peers --torch_python=/path/to/torch/bin/python \\
      --workers=1,2 --schedules=gpipe,1f1b --policies=none,partition

The model, the initial weights, the mini-batch and the updates are the same; so
must the losses be, or the tool fails. Each stage is a process on a core of its
own, with one thread, on all sides. They are measured in turn, step by step;
while one computes, the others wait without taking processor time.

A framework that is not there is shown as 'not installed'; docs/benchmarks.md
says how to install it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

from absl import flags

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import (
  command,
  frameworks,
  harness,
  peer_process,
  peer_setup,
  pipeline,
  pipeline_flags,
  report,
  stack_flags,
  stack_sizes,
  timed_steps,
  transformer_stack,
)

_TORCH_PYTHON = flags.DEFINE_string(
  'torch_python',
  sys.executable,
  'Python interpreter that can import PyTorch (2.5 or newer) and NumPy.',
)
_LINGVO_PYTHON = flags.DEFINE_string(
  'lingvo_python',
  sys.executable,
  'Python interpreter that can import Lingvo.',
)
_WARMUPS = flags.DEFINE_integer(
  'warmups', 2, 'Steps before these.', lower_bound=0
)

OURS = 'lingvo_gpipe'

_COLUMNS = (
  report.Column('framework', 'framework'),
  *timed_steps.CONFIG_COLUMNS,
  *timed_steps.TIME_COLUMNS,
  report.Column('versus', 'ours/theirs', report.Ratio),
  timed_steps.LOSS_COLUMN,
)


class Entry(NamedTuple):
  """A line of the table.

  Attributes:
    framework: its name.
    config: what it runs.
  """

  framework: str
  config: pipeline.Config


Steps = dict[Entry, Callable[[], float]]


def BuildOurs(
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  devices: tuple[str, ...],
  learning_rate: float,
) -> Steps:
  """This project's pipelines.

  Args:
    configs: which.
    sizes: of the stack.
    devices: of workers.
    learning_rate: of SGD.

  Returns:
    For each a function that runs a step and returns its loss.
  """
  weights = transformer_stack.WeightArrays(sizes)

  def _Build(config):
    built = pipeline.Pipeline(
      config, sizes, devices, learning_rate=learning_rate, weights=weights
    )
    report.Progress(f'{OURS} {config.name}: ready')
    return lambda: built.Step().loss

  return {Entry(OURS, config): _Build(config) for config in configs}


def BuildPeer(
  stack: contextlib.ExitStack,
  framework: frameworks.Framework,
  python: str,
  configs: list[pipeline.Config],
  sizes: stack_sizes.Sizes,
  *,
  folder: str,
  learning_rate: float,
) -> Steps:
  """Another framework's pipelines.

  Args:
    stack: ends the processes.
    framework: which.
    python: interpreter that has it.
    configs: which; those that it cannot run are left out.
    sizes: of the stack.
    folder: with arrays.npz.
    learning_rate: of SGD.

  Returns:
    For each a function that runs a step and returns its loss.
  """
  steps = {}
  configs = sorted(
    filter(framework.can_run, configs), key=lambda c: c.num_devices
  )
  for k, of_k in itertools.groupby(configs, key=lambda c: c.num_devices):
    of_k = list(of_k)
    processes = stack.enter_context(
      frameworks.Start(
        framework,
        python,
        of_k,
        sizes,
        folder=folder,
        learning_rate=learning_rate,
      )
    )
    processes.WaitUntilReady()
    name = f'{framework.name} {processes.version}'
    report.Progress(f'{name} K={k}: ready')
    for config in of_k:
      step = functools.partial(processes.Step, config.name)
      step()  # Ours have run their first one.
      steps[Entry(name, config)] = step
  return steps


def Rows(
  samples: dict[Entry, list[harness.Sample]], sizes: stack_sizes.Sizes
) -> list[dict[str, Any]]:
  """The lines of the table.

  Args:
    samples: of harness.Alternate.
    sizes: of the stack.

  Returns:
    A row for each entry, with its speed-up over one partition of the same
    framework and policy, and how much longer (above 1: slower) ours takes than
    it for the same configuration.
  """
  own = {
    entry: timed_steps.Row(entry.config, taken, sizes)
    for entry, taken in samples.items()
  }
  seconds = {entry: row['seconds'] for entry, row in own.items()}
  rows = []
  for entry, median in seconds.items():
    config = entry.config
    alone = [
      other
      for (framework, c), other in seconds.items()
      if framework == entry.framework
      and c.num_devices == 1
      and (c.num_micro_batches, c.policy)
      == (config.num_micro_batches, config.policy)
    ]
    ours = [
      mine
      for (framework, c), mine in seconds.items()
      if framework == OURS and _Same(c, config)
    ]
    rows.append(
      {
        'framework': entry.framework,
        **own[entry],
        'speedup': min(alone) / median if alone else None,
        'versus': (
          ours[0] / median if ours and entry.framework != OURS else None
        ),
        'loss': samples[entry][-1].result,
      }
    )
  return rows


def _Same(a: pipeline.Config, b: pipeline.Config) -> bool:
  """Whether ours does the same: with one partition, whatever the schedule."""
  if a.num_devices == 1:
    b = dataclasses.replace(b, schedule=a.schedule)
  return a == b


def Main() -> int:
  """The tool."""
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    configs = pipeline_flags.Configs(sizes)
  learning_rate = pipeline_flags.LEARNING_RATE.value
  pythons = {
    frameworks.TORCH: _TORCH_PYTHON.value,
    frameworks.LINGVO: _LINGVO_PYTHON.value,
  }
  missing = []
  with (
    user_error.Expected(peer_process.PeerError),
    contextlib.ExitStack() as stack,
  ):
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    workers = stack.enter_context(
      local_workers.LocalWorkers(max(c.num_devices for c in configs))
    )
    steps = BuildOurs(
      configs,
      sizes,
      cluster.Connect(workers.addresses).devices,
      learning_rate,
    )
    peer_setup.WriteArrays(folder, sizes)
    for framework, python in pythons.items():
      if peer_process.CanImport(python, framework.module):
        steps |= BuildPeer(
          stack,
          framework,
          python,
          _EverySchedule(configs),
          sizes,
          folder=folder,
          learning_rate=learning_rate,
        )
      else:
        missing.append({'framework': f'{framework.name}: not installed'})
    samples = harness.Alternate(
      steps,
      rounds=timed_steps.ROUNDS.value,
      warmups=_WARMUPS.value,
      progress=report.Progress,
    )
    steps.clear()
    pipeline.FreeUnused()
  rows = Rows(samples, sizes)
  print(report.Table(_COLUMNS, rows + missing))
  timed_steps.WriteOutput(rows, sizes)
  transformer_stack.CheckLosses(
    {f'{row["framework"]} {row["name"]}': row['loss'] for row in rows}
  )
  return 0


def _EverySchedule(configs: list[pipeline.Config]) -> list[pipeline.Config]:
  """Theirs differ with one partition, too: in what they keep."""
  every = []
  for config in configs:
    names = [config.schedule]
    if config.num_devices == 1:
      names = pipeline_flags.SCHEDULES.value
    every += [dataclasses.replace(config, schedule=name) for name in names]
  return every


if __name__ == '__main__':
  command.Run(Main)
