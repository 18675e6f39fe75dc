"""What a schedule allows.

A block's forward pass takes 1 unit and its backward pass 2; the loss, transfers
and the update take none. What a policy computes again takes 1 unit a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from lingvo_gpipe.gpipe.planning import policies as policies_lib
from lingvo_gpipe.gpipe.schedules import schedule, schedule_table


def RecomputedBlocks(
  blocks: Sequence[int], policies: Sequence[str]
) -> list[int]:
  """How many blocks each partition computes again for a micro-batch.

  The last partition keeps what its backward pass reads, as that follows at
  once; with 'cell' it does so for its last cell only, which is the loss.

  Args:
    blocks: of each partition.
    policies: of each partition, 'none', 'cell' or 'partition'.

  Returns:
    A number for each partition.
  """
  again = policies_lib.Recompute(policies)
  return [n if r else 0 for n, r in zip(blocks, again, strict=True)]


def StepUnits(
  table: schedule_table.Schedule,
  blocks: Sequence[int],
  policies: Sequence[str],
) -> float:
  """How long a step takes at least, filling and draining included.

  Args:
    table: the schedule.
    blocks: of each partition.
    policies: of each partition.

  Returns:
    Units.
  """
  return schedule.StepTime(
    table,
    forward=blocks,
    backward=[2 * n for n in blocks],
    recompute=RecomputedBlocks(blocks, policies),
  )


def SpeedupBound(
  table: schedule_table.Schedule,
  blocks: Sequence[int],
  policies: Sequence[str],
) -> float:
  """How much faster than one partition with the same policy at the most.

  Args:
    table: the schedule.
    blocks: of each partition.
    policies: of each partition; one partition alone has that of the last one.

  Returns:
    The ratio of the steps' units.
  """
  alone = schedule.MakeSchedule('1f1b', 1, table.num_micro_batches)
  return StepUnits(alone, [sum(blocks)], policies[-1:]) / StepUnits(
    table, blocks, policies
  )
