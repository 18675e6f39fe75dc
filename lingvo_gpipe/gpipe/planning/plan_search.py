"""The search for a plan: cuts and policies that keep to the demands."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lingvo_gpipe.gpipe.planning import (
  cut_search,
  partition,
  partition_memory,
  plan_text,
  policies,
)
from lingvo_gpipe.gpipe.schedules import schedule as schedule_lib
from lingvo_gpipe.gpipe.schedules import schedule_table

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe.planning import cost

# What the cut makes as small as possible: the time of a step, or the memory of
# the largest partition.
BALANCE = ('time', 'memory')


@dataclasses.dataclass(frozen=True)
class Demands:
  """What a plan has to keep to, and what its counts leave out.

  Attributes:
    balance: one of BALANCE.
    device_memory: bytes for each partition; None: no bound.
    field_bytes: {name: bytes} of the batch's fields, of one micro-batch.
    state_bytes: of each cell, what the optimizer and averages add; None: none.
    transfer_cost: FLOPs that a device could do while a byte gets to another.
    times: of each cell, measured seconds in place of counted FLOPs; None: none.
      Then `transfer_cost` is in seconds per byte.
  """

  balance: str = 'time'
  device_memory: int | None = None
  field_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
  state_bytes: Sequence[int] | None = None
  transfer_cost: float = 0.0
  times: Sequence[partition.CellTime] | None = None

  def __post_init__(self):
    if self.balance not in BALANCE:
      raise ValueError(
        f'balance={self.balance!r} must be one of {", ".join(BALANCE)}'
      )
    if self.device_memory is not None and self.device_memory <= 0:
      raise ValueError(
        f'device_memory={self.device_memory} must be a number of bytes above 0'
      )


class Search:
  """Cuts and policies of one plan."""

  def __init__(
    self,
    costs: Sequence[cost.CellCost],
    wanted: Sequence[str],
    table: schedule_table.Schedule,
    demands: Demands,
  ):
    self._costs = costs
    # Policies that each partition may have, from the fastest on.
    self._allowed = [
      policies.REMATERIALIZE if policy == policies.AUTO else (policy,)
      for policy in wanted
    ]
    self._table = table
    self._demands = demands
    # A device shares its memory among its partitions.
    self._limit = np.inf
    if demands.device_memory is not None:
      chunks = table.num_partitions // table.num_devices
      self._limit = demands.device_memory / chunks
    self.times = demands.times or [
      partition.CellTime(c.forward_flops, c.backward_flops) for c in costs
    ]
    self._transfers = [c.output_bytes * demands.transfer_cost for c in costs]
    self.slots = partition_memory.AllSlots(table)
    self.memory = partition_memory.PartitionMemory(
      costs, table.num_micro_batches, demands.field_bytes, demands.state_bytes
    )

  def _Options(self, k: int, counted: bool) -> list[partition.Option]:
    is_last = k == len(self._allowed) - 1
    return [
      partition.Option(
        counted and policies.Recomputes(policy, is_last),
        None
        if self._limit == np.inf
        else self.memory.Fits(k, self.slots[k], policy, self._limit),
      )
      for policy in self._allowed[k]
    ]

  def Cuts(self) -> dict[str, list[tuple[int, int]]]:
    """The candidates, by what they make equal."""
    if self._demands.balance == 'memory':
      return {'equal memory': self.EqualMemory()}
    known = None
    if self._limit < np.inf:
      known = self.EqualMemory(self._limit)
      if known is None:
        raise ValueError(self._TooLarge())
    count = len(self._allowed)
    candidates = {'equal work': True, 'equal F + B': False}
    options = [o for k in range(count) for o in self._Options(k, True)]
    if not any(option.recompute for option in options):
      del candidates['equal F + B']
    return {
      name: partition.PartitionWithOptions(
        self.times,
        [self._Options(k, counted) for k in range(count)],
        self._transfers,
        known,
      )
      for name, counted in candidates.items()
    }

  def EqualMemory(self, most: float = np.inf) -> list[tuple[int, int]] | None:
    """The cut whose largest partition takes the least memory.

    Args:
      most: bytes that none may take more than.

    Returns:
      The cut, None if there is none.
    """

    def _Least(k, i, j):
      return np.minimum.reduce(
        [
          self.memory.Bytes(k, self.slots[k], policy, i, j)
          for policy in self._allowed[k]
        ]
      )

    prefix = self.memory.fixed_prefix
    return cut_search.Search(
      [functools.partial(_Least, k) for k in range(len(self._allowed))],
      prefix,
      min(most, 2 * prefix[-1] / len(self._allowed)),
      most,
    )

  def Chosen(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """The fastest policy that fits, or the leanest where none does.

    With balance='memory' always the leanest.
    """
    chosen = []
    for k, (start, end) in enumerate(ranges):
      sizes = {
        policy: float(self.memory.Bytes(k, self.slots[k], policy, start, end))
        for policy in self._allowed[k]
      }
      policy = min(sizes, key=sizes.get)
      if self._demands.balance == 'time':
        fitting = (p for p, size in sizes.items() if size <= self._limit)
        policy = next(fitting, policy)
      chosen.append(policy)
    return chosen

  def StepTime(
    self, ranges: Sequence[tuple[int, int]], chosen: Sequence[str]
  ) -> float:
    transfer = [self._transfers[end - 1] for _, end in ranges[:-1]]
    return CutStepTime(
      self._table, self.times, ranges, policies.Recompute(chosen), transfer
    )

  def _TooLarge(self) -> str:
    """What to say where no cut fits."""
    ranges = self.EqualMemory()
    chosen = self.Chosen(ranges)
    sizes = self.memory.Of(self.slots, chosen, ranges)
    k = int(np.argmax(sizes))
    start, end = ranges[k]
    cells = self._costs[start:end]
    weights = sum(c.param_bytes + c.gradient_bytes for c in cells)
    return (
      f'no cut of {len(self._costs)} cells into {len(ranges)} partitions keeps '
      f'to device_memory={plan_text.Bytes(self._demands.device_memory)}: with '
      'the most even one, partition '
      f'{k} ({cells[0].name} to {cells[-1].name}, {chosen[k]!r}) takes '
      f'{plan_text.Bytes(sizes[k])}, of which {plan_text.Bytes(weights)} are '
      'weights and gradients; use more partitions (--worker_split_size), '
      'smaller micro-batches (--num_micro_batches), rematerialize="auto" or '
      '"cell", or schedule="1f1b"'
    )


def CutStepTime(
  table: schedule_table.Schedule,
  times: Sequence[partition.CellTime],
  ranges: Sequence[tuple[int, int]],
  recompute: Sequence[bool],
  transfer: Sequence[float] | None = None,
) -> float:
  """How long a step takes with a cut.

  Args:
    table: the schedule.
    times: of the cells.
    ranges: the cut, (start, end) of cells for each partition.
    recompute: for each partition, whether it runs its forward pass twice.
    transfer: of each border, see schedule.StepTime.

  Returns:
    The time, in the unit of `times`.
  """
  forward = [sum(t.forward for t in times[i:j]) for i, j in ranges]
  backward = [sum(t.backward for t in times[i:j]) for i, j in ranges]
  again = [f if r else 0 for f, r in zip(forward, recompute, strict=True)]
  return schedule_lib.StepTime(table, forward, backward, again, transfer)
