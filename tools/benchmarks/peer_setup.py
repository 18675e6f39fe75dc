"""What programs of other frameworks are told of the stack and its weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tools.benchmarks import pipeline, stack_sizes, transformer_stack

_ARRAYS = 'arrays.npz'


def WriteArrays(folder: str, sizes: stack_sizes.Sizes) -> None:
  """Writes the mini-batch and the initial weights to `arrays.npz`."""
  np.savez(
    os.path.join(folder, _ARRAYS),
    **transformer_stack.BatchArrays(sizes),
    **transformer_stack.WeightArrays(sizes),
  )


def Cores(count: int) -> list[int]:
  """A core for each process, as local_workers gives them to ours."""
  cores = sorted(os.sched_getaffinity(0))
  return [cores[k % len(cores)] for k in range(count)]


def Common(
  configs: Sequence[pipeline.Config],
  sizes: stack_sizes.Sizes,
  *,
  folder: str,
  learning_rate: float,
) -> dict[str, Any]:
  """The entries of a Setup that all programs need.

  Args:
    configs: with the same number of devices.
    sizes: of the stack.
    folder: that WriteArrays wrote to.
    learning_rate: of SGD.

  Returns:
    Plain data, ready for json.dump.
  """
  return {
    **sizes.ToJson(),
    'num_partitions': configs[0].num_devices,
    'arrays': os.path.join(folder, _ARRAYS),
    'rendezvous': os.path.join(folder, f'stages_{configs[0].num_devices}'),
    'learning_rate': learning_rate,
    'configs': [
      {
        'name': config.name,
        'schedule': config.schedule,
        'num_micro_batches': config.num_micro_batches,
        'policy': config.policy,
      }
      for config in configs
    ],
  }
