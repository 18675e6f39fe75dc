"""Rows of the training loop, and where in memory what waits for its use lies.

A schedule's ticks are equally long and say when a device begins what. The loop
that executes a schedule has rows instead: one iteration, in which a partition
runs the forward pass of one micro-batch, the backward pass of another, both, or
nothing. What a pass produces reaches other partitions one row later. In a row,
a partition's events come in this order:

  1. What has arrived is written into rings.
  2. The forward pass reads activations, and writes what it keeps.
  3. The backward pass reads activations (where it needs them), what was kept,
     and gradients.

A ring is memory for as many micro-batches as the table ever needs at once.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
from typing import NamedTuple

import numpy as np

from lingvo_gpipe.gpipe.schedules import drain_rows, schedule_table


class Ring(NamedTuple):
  """Which slots of a buffer the micro-batches take in turn.

  Attributes:
    size: slots needed.
    slots: int32 [num_micro_batches], the slot in which a micro-batch lies.
    writes: int32 [num_rows], the slot written in each row; `size`, a dummy
      slot, in rows without a write.
  """

  size: int
  slots: np.ndarray
  writes: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class LoopTable:
  """A schedule as a table of rows and partitions.

  The last partition runs a micro-batch's forward and backward pass together:
  its columns of `forward` and `backward` are equal.

  Attributes:
    schedule: that it was made from.
    forward: int32 [num_rows, num_partitions], the micro-batch whose forward
      pass a partition runs in a row, or -1.
    backward: int32 [num_rows, num_partitions], likewise.
  """

  schedule: schedule_table.Schedule
  forward: np.ndarray
  backward: np.ndarray

  @property
  def num_rows(self) -> int:
    return len(self.forward)

  def Activations(self, source: int, target: int, until_backward: bool) -> Ring:
    """For what a partition sends forward, on the device of the receiver.

    Args:
      source: index of the sending partition.
      target: index of the receiving partition, any later one.
      until_backward: whether the receiver's backward pass reads it, too.

    Returns:
      The ring, written one row after the forward passes of `source`.
    """
    self._CheckOrder(source, target)
    last_use = self._backward_rows if until_backward else self._forward_rows
    return self._Ring(self._forward_rows[source] + 1, last_use[target])

  def Gradients(self, source: int, target: int) -> Ring:
    """For gradients of what `source` had sent, on the device of `source`.

    Args:
      source: index of the partition that receives gradients.
      target: index of the partition that returns them, any later one.

    Returns:
      The ring, written one row after the backward passes of `target`.
    """
    self._CheckOrder(source, target)
    return self._Ring(
      self._backward_rows[target] + 1, self._backward_rows[source]
    )

  def Kept(self, partition: int) -> Ring:
    """For what forward passes keep for the backward passes of a partition.

    Args:
      partition: its index. The last partition needs one slot, for the time
        between the two passes of a row.

    Returns:
      The ring, written in the rows of the forward passes.
    """
    return self._Ring(
      self._forward_rows[partition], self._backward_rows[partition]
    )

  @functools.cached_property
  def _forward_rows(self) -> np.ndarray:
    return _RowsOf(self.forward, self.schedule.num_micro_batches)

  @functools.cached_property
  def _backward_rows(self) -> np.ndarray:
    return _RowsOf(self.backward, self.schedule.num_micro_batches)

  def _CheckOrder(self, source: int, target: int) -> None:
    if not 0 <= source < target < self.schedule.num_partitions:
      raise ValueError(
        f'source={source} and target={target} must be two of '
        f'{self.schedule.num_partitions} partitions, the earlier one first'
      )

  def _Ring(self, first: np.ndarray, last: np.ndarray) -> Ring:
    """Slots for micro-batches that lie there from row `first` to `last`.

    Colours intervals: in order of `first`, each takes the slot that has been
    free for the longest time, or a new one. No smaller ring would do.

    Args:
      first: int [num_micro_batches], all different.
      last: int [num_micro_batches], inclusive.

    Returns:
      The ring.
    """
    slots = np.empty(len(first), np.int32)
    taken = []  # A heap of (last row, slot).
    first_rows, last_rows = first.tolist(), last.tolist()
    for i in np.argsort(first).tolist():
      if taken and taken[0][0] < first_rows[i]:
        slot = taken[0][1]
        heapq.heapreplace(taken, (last_rows[i], slot))
      else:
        slot = len(taken)
        heapq.heappush(taken, (last_rows[i], slot))
      slots[i] = slot
    writes = np.full(self.num_rows, len(taken), np.int32)
    writes[first] = slots
    return Ring(len(taken), slots, writes)


def MakeLoopTable(schedule: schedule_table.Schedule) -> LoopTable:
  """The rows in which a loop executes a schedule.

  Each device keeps the schedule's order. A pass takes the first row after those
  of what it needs from other partitions, and after the row of what its device
  did before; a backward pass that follows a forward pass shares its row. The
  last partition's forward passes wait for their backward passes. Fill-drain
  schedules take some later rows, see drain_rows.py.

  Args:
    schedule: the table, one that passes Check.

  Returns:
    The rows.
  """
  num_partitions = schedule.num_partitions
  num_micro_batches = schedule.num_micro_batches
  last = num_partitions - 1
  # Rows, [partition][micro-batch].
  forward = [[-1] * num_micro_batches for _ in range(num_partitions)]
  backward = [[-1] * num_micro_batches for _ in range(num_partitions)]
  # The first rows that are free for a pass of each direction, by device.
  free_for_forward = [0] * schedule.num_devices
  free_for_backward = [0] * schedule.num_devices
  for _, device, (micro_batch, partition, direction) in schedule.Slots():
    if direction == schedule_table.FORWARD:
      if partition == last:
        continue
      row = free_for_forward[device]
      if partition > 0:
        row = max(row, forward[partition - 1][micro_batch] + 1)
      forward[partition][micro_batch] = row
      free_for_backward[device] = row
    else:
      row = free_for_backward[device]
      if partition < last:
        row = max(row, backward[partition + 1][micro_batch] + 1)
      elif partition > 0:
        row = max(row, forward[partition - 1][micro_batch] + 1)
      backward[partition][micro_batch] = row
      free_for_backward[device] = row + 1
    free_for_forward[device] = row + 1
  forward, backward = np.array(forward), np.array(backward)
  if schedule.num_devices == num_partitions and np.all(
    # All but the last run all forward passes first.
    forward[:last, -1] <= backward[:last, 0]
  ):
    backward = drain_rows.Align(forward, backward)
  forward[last] = backward[last]
  num_rows = backward.max() + 1
  return LoopTable(
    schedule, _ByRow(forward, num_rows), _ByRow(backward, num_rows)
  )


def _ByRow(rows: np.ndarray, num_rows: int) -> np.ndarray:
  """[num_rows, num_partitions] of micro-batches from rows, as of _RowsOf."""
  num_partitions, num_micro_batches = rows.shape
  table = np.full([num_rows, num_partitions], -1, np.int32)
  table[rows, np.arange(num_partitions)[:, np.newaxis]] = np.arange(
    num_micro_batches
  )
  return table


def _RowsOf(table: np.ndarray, num_micro_batches: int) -> np.ndarray:
  """[num_partitions, num_micro_batches] of the rows of a direction."""
  rows = np.empty([table.shape[1], num_micro_batches], np.int64)
  row, partition = np.nonzero(table >= 0)
  rows[partition, table[row, partition]] = row
  return rows
