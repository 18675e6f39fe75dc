"""Rows of the backward passes of a fill-drain schedule.

A pass reads a ring after all that was sent to it in the rows before its own,
needed or not. In fill-drain the first partition is through with its forward
passes, each a row, when the last one, whose passes take three times as long, is
at its third micro-batch. Were that in row 3, the first backward pass would wait
for gradients of all rows up to its own. So the last partition leaves rows out,
until the rows of different partitions come at the same time:

  row          0  1  2  3  4  5    6  7  8  9  10     2 partitions, M = 6
  partition 0  F0 F1 F2 F3 F4 F5B0 B1 B2 B3 B4 B5
  partition 1  .  FB .  .  .  FB   FB FB FB FB .

with F5 and B0 in one row. Here the second FB in turn waits for F4, which it
doesn't need, a third of its own length; there is no better table.
"""

from __future__ import annotations

import numpy as np

# Passes of equal partitions, as in the schedules' analysis.
_FORWARD, _BACKWARD = 1, 2


def Align(forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
  """Moves backward passes to rows where they wait for nothing they don't need.

  Args:
    forward: int [K, M], the rows of forward passes; of the last partition
      anything.
    backward: int [K, M], the first possible rows of backward passes; those of
      the last partition include forward passes.

  Returns:
    int [K, M], rows of backward passes, none earlier.
  """
  rows = backward.copy()
  last, num_micro_batches = len(rows) - 1, rows.shape[1]
  starts, ends = _Times(len(rows), num_micro_batches)
  # By partition and micro-batch, the first gradient that comes too late for a
  # backward pass: it must not be sent in a row before.
  too_late = [
    np.searchsorted(ends[k + 1], starts[k], side='right') for k in range(last)
  ]
  before = None
  while not np.array_equal(before, rows):
    before = rows.copy()
    for k in range(last):
      bound = np.zeros(num_micro_batches + 1, rows.dtype)
      np.maximum.at(bound, too_late[k], rows[k])
      rows[k + 1] = _Increasing(np.maximum(rows[k + 1], bound[:-1]))
    for k in reversed(range(last)):
      needed = np.maximum(rows[k + 1] + 1, forward[k, -1])
      rows[k] = _Increasing(np.maximum(rows[k], needed))
  # No device gets further ahead in rows than it is in time: the runtime keeps
  # few of them open at once.
  for i in reversed(range(num_micro_batches - 1)):
    latest = rows[last, i + 1] - 1
    if last:
      latest = min(latest, rows[last - 1, i] - 1)
    rows[last, i] = max(rows[last, i], min(starts[last, i], latest))
  return rows


def _Times(
  num_partitions: int, num_micro_batches: int
) -> tuple[np.ndarray, np.ndarray]:
  """When backward passes start and end, [K, M] each.

  Those of the last partition start with their forward passes.
  """
  step = np.arange(num_micro_batches)
  both = _FORWARD + _BACKWARD
  starts = [(num_partitions - 1) * _FORWARD + both * step]
  ends = [starts[0] + both]
  for k in reversed(range(num_partitions - 1)):
    free = (k + num_micro_batches) * _FORWARD
    ready = np.maximum(free, ends[0])
    slack = np.maximum.accumulate(ready - _BACKWARD * step)
    starts.insert(0, slack + _BACKWARD * step)
    ends.insert(0, starts[0] + _BACKWARD)
  return np.stack(starts), np.stack(ends)


def _Increasing(rows: np.ndarray) -> np.ndarray:
  """The least increasing rows that are none earlier."""
  step = np.arange(len(rows))
  return np.maximum.accumulate(rows - step) + step
