"""What a candidate takes of each device, and how long a step of it is.

Pure Python, given the counted costs of the cells.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lingvo_gpipe.gpipe import replica_owners
from lingvo_gpipe.gpipe.planning import (
  partition,
  plan_search,
  policies,
  step_simulation,
)
from lingvo_gpipe.gpipe.schedules import loop_table, schedule_table
from tools.plan import candidates as candidates_lib
from tools.plan import device as device_lib

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe.planning import cost


@dataclasses.dataclass(frozen=True)
class Counted:
  """A model's costs for one size of micro-batch.

  Attributes:
    costs: of the cells.
    field_bytes: {name: bytes} of the batch's fields.
  """

  costs: Sequence[cost.CellCost]
  field_bytes: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Model(Protocol):
  """What is known of a model.

  Attributes:
    batch_size: N, examples of the mini-batch.
    divisible: what R x M must divide, N or a divisor of it.
    state_sizes: for each cell the bytes of each of the variables that the
      optimizer and averages add.
    num_cells: L.
  """

  batch_size: int
  divisible: int
  state_sizes: Sequence[Sequence[int]]

  @property
  def num_cells(self) -> int: ...

  def Count(self, micro_batch_size: int) -> Counted:
    """The costs for micro-batches of so many examples."""
    ...


@dataclasses.dataclass(frozen=True)
class Planned:
  """A candidate that fits.

  Attributes:
    candidate: the pipeline.
    ranges: the cut, (start, end) of cells for each partition.
    policies: of each partition.
    memory: bytes of each device of a replica, overhead included.
    loop_seconds: of the passes of all micro-batches.
    all_reduce_seconds: to add up the replicas' gradients.
    update_seconds: to apply them.
    bubble: share of the loop in which devices do not compute.
  """

  candidate: candidates_lib.Candidate
  ranges: tuple[tuple[int, int], ...]
  policies: tuple[str, ...]
  memory: tuple[int, ...]
  loop_seconds: float
  all_reduce_seconds: float
  update_seconds: float
  bubble: float

  @property
  def seconds(self) -> float:
    """Of a step."""
    return self.loop_seconds + self.all_reduce_seconds + self.update_seconds


@dataclasses.dataclass(frozen=True)
class Rejected:
  """A candidate that does not fit.

  Attributes:
    candidate: the pipeline.
    memory: bytes that a device must have with the cut for which this is least,
      overhead included. Partitions share their device equally, so it is as many
      times the largest one as a device has partitions.
    partition: index of the largest one.
  """

  candidate: candidates_lib.Candidate
  memory: int
  partition: int


class Evaluator:
  """Judges candidates of one model on one kind of device."""

  def __init__(self, model: Model, device: device_lib.Device):
    self._model = model
    self._device = device

  @functools.cache  # noqa: B019
  def Times(self, micro_batch_size: int) -> list[partition.CellTime]:
    """Seconds of each cell for a micro-batch of so many examples."""
    costs = self._model.Count(micro_batch_size).costs
    return [
      partition.CellTime(
        time.forward,
        time.backward + self._device.Accumulate(cell.gradient_bytes),
      )
      for time, cell in zip(
        self._device.Times(costs, micro_batch_size), costs, strict=True
      )
    ]

  def LeastSeconds(self, candidate: candidates_lib.Candidate) -> float:
    """A bound that no cut beats; see candidates.LeastSeconds."""
    times = self.Times(candidate.micro_batch_size)
    return candidates_lib.LeastSeconds(
      candidate, sum(t.forward for t in times), sum(t.backward for t in times)
    )

  def Evaluate(self, candidate: candidates_lib.Candidate) -> Planned | None:
    """Cuts the cells, then counts memory and plays a step.

    Args:
      candidate: the pipeline.

    Returns:
      The fastest cut that fits, None where there is none.
    """
    if not self.Fits(candidate):
      return None
    search = self._Search(candidate)
    planned = [
      self._Planned(candidate, search, ranges)
      for ranges in search.Cuts().values()
    ]
    return min(planned, key=lambda p: p.seconds)

  def LeastMemory(self, candidate: candidates_lib.Candidate) -> int:
    """Bytes that the mean device takes at least, overhead included."""
    counted = self._model.Count(candidate.micro_batch_size)
    fixed = sum(c.param_bytes + 2 * c.gradient_bytes for c in counted.costs)
    fixed += sum(self._StateBytes(candidate.num_replicas))
    return self._device.memory_overhead + fixed // candidate.num_devices

  def Reject(self, candidate: candidates_lib.Candidate) -> Rejected:
    """What a candidate that does not fit takes."""
    search = self._Search(candidate)
    ranges = search.EqualMemory()
    sizes = search.memory.Of(search.slots, search.Chosen(ranges), ranges)
    needed = candidate.num_chunks * max(sizes) + self._device.memory_overhead
    return Rejected(candidate, needed, sizes.index(max(sizes)))

  def _IsHopeless(self, candidate: candidates_lib.Candidate) -> bool:
    memory = self._device.memory
    return memory is not None and self.LeastMemory(candidate) > memory

  def Fits(self, candidate: candidates_lib.Candidate) -> bool:
    """Whether any cut keeps to the devices' memory."""
    limit = self._device.model_memory
    if limit is None:
      return True
    if self._IsHopeless(candidate):
      return False
    search = self._Search(candidate)
    return search.EqualMemory(limit / candidate.num_chunks) is not None

  def SmallestFitting(self, candidate: candidates_lib.Candidate) -> int | None:
    """How many devices the same pipeline needs.

    Memory shrinks with K but for single steps, so K is doubled, and what
    remains is halved.

    Args:
      candidate: one that does not fit.

    Returns:
      K with which it fits, though not with one less; None where no number of
      devices is enough.
    """
    most = self._model.num_cells // candidate.num_chunks
    too_few, enough = candidate.num_devices, candidate.num_devices
    while True:
      if enough >= most:
        return None
      enough = min(2 * enough, most)
      if self.Fits(dataclasses.replace(candidate, num_devices=enough)):
        break
      too_few = enough
    while enough - too_few > 1:
      middle = (enough + too_few) // 2
      if self.Fits(dataclasses.replace(candidate, num_devices=middle)):
        enough = middle
      else:
        too_few = middle
    return enough

  def _Search(self, candidate: candidates_lib.Candidate) -> plan_search.Search:
    counted = self._model.Count(candidate.micro_batch_size)
    return plan_search.Search(
      counted.costs,
      [candidate.policy] * candidate.num_partitions,
      _Table(candidate.WithPolicy('')),
      plan_search.Demands(
        device_memory=self._device.model_memory,
        field_bytes=dict(counted.field_bytes),
        # Gradients exist twice: their sums, and those of one micro-batch, or
        # later what the update makes of them.
        state_bytes=[
          state + c.gradient_bytes
          for state, c in zip(
            self._StateBytes(candidate.num_replicas),
            counted.costs,
            strict=True,
          )
        ],
        transfer_cost=self._device.Sending(1),
        times=self.Times(candidate.micro_batch_size),
      ),
    )

  @functools.cache  # noqa: B019
  def _StateBytes(self, num_replicas: int) -> list[int]:
    """Replicas share what the optimizer adds."""
    return [
      replica_owners.LargestShare(sizes, num_replicas)
      for sizes in self._model.state_sizes
    ]

  def _PerDevice(self, sizes: Sequence[int], num_devices: int) -> list[int]:
    return [
      self._device.memory_overhead + sum(sizes[d::num_devices])
      for d in range(num_devices)
    ]

  def _Planned(
    self,
    candidate: candidates_lib.Candidate,
    search: plan_search.Search,
    ranges: Sequence[tuple[int, int]],
  ) -> Planned:
    device, num_devices = self._device, candidate.num_devices
    costs = self._model.Count(candidate.micro_batch_size).costs
    chosen = search.Chosen(ranges)
    passes = [
      step_simulation.PassSeconds(
        forward=sum(t.forward for t in search.times[i:j]),
        backward=sum(t.backward for t in search.times[i:j]),
        recompute=sum(
          t.forward for t in search.times[i : _RecomputedEnd(chosen, k, i, j)]
        ),
        sending=device.Sending(costs[j - 1].output_bytes),
      )
      for k, (i, j) in enumerate(ranges)
    ]
    played = step_simulation.Simulate(
      _Rows(candidate.WithPolicy('')),
      passes,
      device.link_latency,
    )
    gradients = [sum(c.gradient_bytes for c in costs[i:j]) for i, j in ranges]
    state = self._StateBytes(candidate.num_replicas)
    weights = [
      sum(c.param_bytes for c in costs[i:j]) // candidate.num_replicas
      + sum(state[i:j])
      for i, j in ranges
    ]
    updates = [
      device.Update(
        sum(weights[d::num_devices]), sum(gradients[d::num_devices])
      )
      for d in range(num_devices)
    ]
    reduces = [
      device.AllReduce(sum(gradients[d::num_devices]), candidate.num_replicas)
      for d in range(num_devices)
    ]
    memory = search.memory.Of(search.slots, chosen, ranges)
    return Planned(
      candidate,
      ranges=tuple(ranges),
      policies=tuple(chosen),
      memory=tuple(self._PerDevice(memory, num_devices)),
      loop_seconds=played.seconds,
      all_reduce_seconds=max(reduces),
      update_seconds=max(updates),
      bubble=played.bubble,
    )


def _RecomputedEnd(chosen: Sequence[str], k: int, start: int, end: int) -> int:
  """The end of the cells of partition k that are computed again."""
  is_last = k == len(chosen) - 1
  if not policies.Recomputes(chosen[k], is_last):
    return start
  # Cell by cell, the last one's backward pass follows its forward pass.
  return end - is_last


# Tables do not depend on what is computed again.
@functools.lru_cache(maxsize=64)
def _Table(candidate: candidates_lib.Candidate) -> schedule_table.Schedule:
  return candidate.Table()


@functools.lru_cache(maxsize=64)
def _Rows(candidate: candidates_lib.Candidate) -> loop_table.LoopTable:
  return loop_table.MakeLoopTable(_Table(candidate))
