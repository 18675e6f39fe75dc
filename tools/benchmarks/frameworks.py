"""Other frameworks' pipelines of the same stack, as processes to measure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tools.benchmarks import peer_process, peer_setup, pipeline, stack_sizes


class Framework(NamedTuple):
  """A framework that peers.py can measure.

  Attributes:
    name: of it.
    module: what an interpreter that has it can import.
    program: name of the file here that its interpreter runs.
    can_run: whether it has the schedule and the policy of a config.
    processes: of a number of partitions and Sizes: what each process is told
      beside peer_setup.Common.
  """

  name: str
  module: str
  program: str
  can_run: Callable[[pipeline.Config], bool]
  processes: Callable[[int, stack_sizes.Sizes], list[dict[str, Any]]]


def Start(
  framework: Framework,
  python: str,
  configs: Sequence[pipeline.Config],
  sizes: stack_sizes.Sizes,
  *,
  folder: str,
  learning_rate: float,
) -> peer_process.PeerProcesses:
  """Starts the processes of some configurations.

  Args:
    framework: that runs them.
    python: interpreter that has it.
    configs: with the same number of devices.
    sizes: of the stack.
    folder: with `arrays.npz` of peer_setup; processes find each other there.
    learning_rate: of SGD.

  Returns:
    The processes.
  """
  common = peer_setup.Common(
    configs, sizes, folder=folder, learning_rate=learning_rate
  )
  return peer_process.PeerProcesses(
    python,
    os.path.join(os.path.dirname(__file__), framework.program),
    [
      {**common, **own}
      for own in framework.processes(configs[0].num_devices, sizes)
    ],
  )


def _TorchCanRun(config: pipeline.Config) -> bool:
  # Its 1F1B wants a micro-batch for each stage.
  enough = config.num_micro_batches >= config.num_devices
  return '+' not in config.policy and (
    config.schedule == 'gpipe' or (config.schedule == '1f1b' and enough)
  )


def _TorchProcesses(
  num_partitions: int, sizes: stack_sizes.Sizes
) -> list[dict[str, Any]]:
  """A process for each stage, on a core of its own."""
  counts = pipeline.EqualCut(sizes.layers, num_partitions)
  return [
    {
      'rank': rank,
      'core': core,
      'blocks': [sum(counts[:rank]), sum(counts[: rank + 1])],
    }
    for rank, core in enumerate(peer_setup.Cores(num_partitions))
  ]


def _LingvoProcesses(
  num_partitions: int, sizes: stack_sizes.Sizes
) -> list[dict[str, Any]]:
  """One process for all partitions, on as many cores."""
  return [
    {
      'cores': peer_setup.Cores(num_partitions),
      'blocks': pipeline.EqualCut(sizes.layers, num_partitions),
    }
  ]


TORCH = Framework(
  'PyTorch',
  'torch.distributed.pipelining',
  'torch_program.py',
  _TorchCanRun,
  _TorchProcesses,
)
LINGVO = Framework(
  'Lingvo',
  'lingvo.core.gpipe',
  'lingvo_program.py',
  lambda c: c.schedule == 'gpipe' and c.policy == 'partition',
  _LingvoProcesses,
)
