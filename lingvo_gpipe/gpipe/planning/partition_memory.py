"""How much memory a partition takes on its device, counted from shapes.

Counted are

  weights    all variables, and what the optimizer and averages add to them
  gradients  their sums over the micro-batches
  data       the fields of all M micro-batches that its cells ask for; of the
             first partition also the inputs
  received   inputs of the micro-batches in flight
  kept       what the policy of re-materialization keeps of each of those
  working    what the backward pass reads of one micro-batch, where that was
             not kept; with 'cell' of the largest cell
  returned   gradients of its outputs, and one micro-batch of outputs

with as many micro-batches in flight as the loop's rings have slots
(loop_table.py). Not counted are skip connections, what kernels take for a
moment, and what the allocator and TensorFlow itself need.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lingvo_gpipe.gpipe.schedules import loop_table, schedule_table

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe.planning import cost


class Slots(NamedTuple):
  """How many micro-batches of each kind lie on a partition's device.

  Attributes:
    received: inputs; 0 for the first partition, which reads data.
    kept: what the forward pass keeps.
    returned: gradients of outputs; 0 for the last partition.
  """

  received: int
  kept: int
  returned: int


def AllSlots(table: schedule_table.Schedule) -> list[Slots]:
  """The slots of each partition.

  Args:
    table: the schedule.

  Returns:
    One Slots for each.
  """
  rows = loop_table.MakeLoopTable(table)
  last = table.num_partitions - 1
  return [
    Slots(
      rows.Activations(k - 1, k, until_backward=True).size if k else 0,
      rows.Kept(k).size if k < last else 1,
      rows.Gradients(k, k + 1).size if k < last else 0,
    )
    for k in range(last + 1)
  ]


class PartitionMemory:
  """Memory of any consecutive cells as a partition.

  Args:
    costs: of all cells.
    num_micro_batches: M.
    field_bytes: {name: bytes} of the batch's fields, of one micro-batch.
    state_bytes: of each cell, what the optimizer and averages add to its
      variables; None: nothing.

  Attributes:
    fixed_prefix: [num_cells + 1], sums of what any partition takes at least.
  """

  def __init__(
    self,
    costs: Sequence[cost.CellCost],
    num_micro_batches: int,
    field_bytes: dict[str, int] | None = None,
    state_bytes: Sequence[int] | None = None,
  ):
    self._num_micro_batches = num_micro_batches
    self._field_bytes = field_bytes or {}
    if state_bytes is None:
      state_bytes = [0] * len(costs)

    def _Array(values) -> np.ndarray:
      return np.array(list(values), np.float64)

    weights = _Array(c.param_bytes + c.gradient_bytes for c in costs)
    fixed = weights + _Array(state_bytes)
    self._several_readers = []
    for name, size in self._field_bytes.items():
      readers = _Array(name in c.batch_fields for c in costs)
      if readers.sum() == 1:
        fixed = fixed + num_micro_batches * size * readers
      elif readers.any():
        self._several_readers.append((size, _Prefix(readers)))
    # Sums of what does not depend on the schedule.
    self.fixed_prefix = _Prefix(fixed)
    # Inputs, and what a cell's backward pass reads beside them; of the end of
    # the list nothing is asked, but indices reach it.
    self._inputs = np.append(_Array(c.input_bytes for c in costs), 0.0)
    read = np.append(_Array(c.activation_bytes for c in costs), 0.0)
    self._beside = np.maximum(read - self._inputs, 0)
    self._all_inputs = _Prefix(self._inputs)
    self._activations = _Prefix(read)
    self._largest = _RangeMaximum(self._beside)
    outputs = _Array(c.output_bytes for c in costs)
    self._outputs = np.append(0.0, outputs)  # by the end of the partition

  def Bytes(
    self, k: int, slots: Slots, policy: str, i: np.ndarray, j: np.ndarray
  ) -> np.ndarray:
    """Bytes of partition k, made of cells [i, j).

    Args:
      k: its index; 0 takes its inputs from the data.
      slots: of the partition.
      policy: 'none', 'partition' or 'cell'.
      i: integers, the first cells.
      j: integers, the ends, greater than i; broadcast against i.

    Returns:
      float64, of the common shape.
    """
    i, j = np.asarray(i), np.asarray(j)
    by_start, by_end = self._Terms(k, slots, policy)
    size = by_start[i] + by_end[j]
    for field_bytes, readers in self._several_readers:
      asked = readers[j] > readers[i]
      size = size + self._num_micro_batches * field_bytes * asked
    if policy == 'cell':
      size = size + self._largest.Between(i, j)
    return size

  @functools.cache  # noqa: B019
  def _Terms(
    self, k: int, slots: Slots, policy: str
  ) -> tuple[np.ndarray, np.ndarray]:
    """What depends on the start of a partition, and on its end."""
    by_end = self.fixed_prefix.copy()
    by_start = -self.fixed_prefix
    if k == 0:
      by_start += self._num_micro_batches * self._inputs
    else:
      # A gradient of them leaves while the next micro-batch is received.
      by_start += (slots.received + 1) * self._inputs
    if slots.returned:
      by_end += (slots.returned + 1) * self._outputs
    # The inputs of the first cell are what was received.
    if policy == 'cell':
      by_end += slots.kept * self._all_inputs[:-1]
      by_start -= slots.kept * self._all_inputs[1:]
    else:
      count = slots.kept if policy == 'none' else 1
      by_end += count * self._activations[:-1]
      by_start += count * (self._beside - self._activations[1:])
    return by_start, by_end

  def Of(
    self, slots: Sequence[Slots], policies: Sequence[str], ranges
  ) -> list[int]:
    """Bytes of each partition of a cut."""
    return [
      int(self.Bytes(k, slots[k], policies[k], start, end))
      for k, (start, end) in enumerate(ranges)
    ]

  def Fits(
    self, k: int, slots: Slots, policy: str, limit: float
  ) -> functools.partial:
    """A function of index arrays i and j: whether [i, j) keeps the limit."""
    return functools.partial(self._Fits, k, slots, policy, limit)

  def _Fits(self, k, slots, policy, limit, i, j) -> np.ndarray:
    return self.Bytes(k, slots, policy, i, j) <= limit


def _Prefix(values: np.ndarray) -> np.ndarray:
  return np.concatenate(([0.0], np.cumsum(values)))


class _RangeMaximum:
  """The largest of values[i:j], from tables of all powers of two."""

  def __init__(self, values: np.ndarray):
    tables, size = [values], 1
    while 2 * size <= len(values):
      table = tables[-1].copy()
      table[:-size] = np.maximum(table[:-size], table[size:])
      tables.append(table)
      size *= 2
    self._tables = np.stack(tables)
    # floor(log2(n)) of every length n.
    self._powers = np.frexp(np.arange(len(values) + 1))[1] - 1

  def Between(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    power = self._powers[j - i]
    return np.maximum(
      self._tables[power, i], self._tables[power, j - (1 << power)]
    )
