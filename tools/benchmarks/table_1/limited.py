"""The largest stack that trains where workers may take so much memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.benchmarks import memory_search, pipeline, stack_sizes
from tools.benchmarks.paper import published


def Search(
  sizes: stack_sizes.Sizes,
  devices: Sequence[int],
  num_micro_batches: int,
  schedule: str,
  *,
  memory: int,
  timeout: float,
) -> list[dict[str, Any]]:
  """Tries numbers of blocks, the same number on each worker.

  Args:
    sizes: of the stack; its number of blocks does not matter.
    devices: K of the pipelines.
    num_micro_batches: M.
    schedule: of the passes.
    memory: bytes of each worker.
    timeout: seconds of one trial.

  Returns:
    Rows of memory_search.SearchRows, with `setting` and `paper_ratio`, of
    parameters.

  Raises:
    TrainingError: where a trial fails for another reason than memory.
  """
  rows = memory_search.SearchRows(
    [
      pipeline.Config(
        k, num_micro_batches, schedule=schedule, policy='cell', cut='equal'
      )
      for k in devices
    ],
    sizes,
    memory,
    timeout,
  )
  naive = published.TRANSFORMER_SIZES[0]
  paper = {
    size.setting: size.parameters / naive.parameters
    for size in published.TRANSFORMER_SIZES
  }
  settings = ['Naive-1', *(f'Pipeline-{k}' for k in devices)]
  for setting, row in zip(settings, rows, strict=True):
    row |= {'setting': setting, 'paper_ratio': paper.get(setting)}
  return rows
