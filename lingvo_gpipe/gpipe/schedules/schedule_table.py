"""Which partition runs which micro-batch when: schedules as plain tables.

A schedule is a table of clock ticks and devices. Each entry is a `Slot`: the
forward or the backward pass of one micro-batch through one partition, or None
where the device is idle. All here (checks, bubble, in-flight counts, drawing)
reads tables and works for any kind of schedule.

A device may hold several partitions: partition k belongs to device
k mod num_devices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

FORWARD = 'forward'
BACKWARD = 'backward'


class Slot(NamedTuple):
  """What a device does in a tick."""

  micro_batch: int
  partition: int
  direction: str  # FORWARD or BACKWARD


@dataclasses.dataclass(frozen=True)
class Schedule:
  """A table of ticks and devices.

  Attributes:
    name: the kind of schedule, a key of SCHEDULES.
    num_partitions: K.
    num_micro_batches: M.
    ticks: [tick][device], a Slot or None.
  """

  name: str
  num_partitions: int
  num_micro_batches: int
  ticks: tuple[tuple[Slot | None, ...], ...]

  @property
  def num_devices(self) -> int:
    return len(self.ticks[0])

  @property
  def num_chunks(self) -> int:
    """V, how many partitions a device holds."""
    return self.num_partitions // self.num_devices

  def Slots(self) -> Iterator[tuple[int, int, Slot]]:
    """(tick, device, slot) of all that is not idle, in order of ticks."""
    for tick, row in enumerate(self.ticks):
      for device, slot in enumerate(row):
        if slot is not None:
          yield tick, device, slot

  def BubbleFraction(self) -> float:
    """Share of idle entries, were all entries of equal length."""
    total = len(self.ticks) * self.num_devices
    return 1 - sum(1 for _ in self.Slots()) / total

  def InFlight(self) -> list[int]:
    """For each partition, how many micro-batches it must keep at the most.

    A micro-batch is kept from the tick of its forward pass to that of its
    backward pass.
    """
    kept = [0] * self.num_partitions
    peak = [0] * self.num_partitions
    for _, _, slot in self.Slots():
      if slot.direction == FORWARD:
        kept[slot.partition] += 1
        peak[slot.partition] = max(peak[slot.partition], kept[slot.partition])
      else:
        kept[slot.partition] -= 1
    return peak

  def Check(self) -> None:
    """Verifies that the table trains the model.

    Raises:
      ValueError: lists each slot that is missing, comes twice, is on the wrong
        device, out of the order of micro-batches, or does not come after
        what it needs.
    """
    faults = []
    tick_of = {}
    latest = {}
    for tick, device, slot in self.Slots():
      if slot in tick_of:
        faults.append(
          f'{slot} comes twice, in ticks {tick_of[slot]} and {tick}'
        )
      if device != slot.partition % self.num_devices:
        faults.append(f'{slot} is on device {device}')
      before = latest.get((slot.partition, slot.direction), slot)
      if slot.micro_batch < before.micro_batch:
        faults.append(f'{slot} comes later than {before}')
      latest[slot.partition, slot.direction] = slot
      tick_of[slot] = tick
    last = self.num_partitions - 1
    for partition in range(self.num_partitions):
      for micro_batch in range(self.num_micro_batches):
        forward = Slot(micro_batch, partition, FORWARD)
        backward = Slot(micro_batch, partition, BACKWARD)
        needs = [(backward, forward)]
        if partition > 0:
          needs.append((forward, Slot(micro_batch, partition - 1, FORWARD)))
        if partition < last:
          needs.append((backward, Slot(micro_batch, partition + 1, BACKWARD)))
        for slot in (forward, backward):
          if slot not in tick_of:
            faults.append(f'{slot} is missing')
        for slot, needed in needs:
          if slot in tick_of and needed in tick_of:
            if tick_of[slot] <= tick_of[needed]:
              faults.append(f'{slot} does not come after {needed}')
    expected = 2 * self.num_partitions * self.num_micro_batches
    if len(tick_of) > expected:
      faults.append(f'{len(tick_of)} different slots instead of {expected}')
    if faults:
      raise ValueError(
        f'schedule {self.name} of {self.num_partitions} partitions and '
        f'{self.num_micro_batches} micro-batches is wrong: ' + '; '.join(faults)
      )

  def ToText(self) -> str:
    """Draws the table: F and B with the micro-batch.

    A line per device or, if devices hold several partitions, per partition.
    """
    width = len(str(self.num_micro_batches - 1)) + 1
    lines = []
    for device in range(self.num_devices):
      for chunk in range(self.num_chunks):
        partition = chunk * self.num_devices + device
        entries = [f'device {device} ']
        if self.num_chunks > 1:
          entries.append(f'chunk {chunk} ')
        for row in self.ticks:
          slot = row[device]
          text = '.' * width
          if slot is not None and slot.partition == partition:
            text = f'{slot.direction[0].upper()}{slot.micro_batch}'
          entries.append(text.ljust(width))
        lines.append(' '.join(entries).rstrip())
    return '\n'.join(lines)


def FromOrders(
  name: str,
  num_partitions: int,
  num_micro_batches: int,
  orders: Sequence[Sequence[Slot]],
) -> Schedule:
  """The table in which every device does its work in a given order.

  Each slot takes the first tick after those of what it needs.

  Args:
    name: of the kind of schedule.
    num_partitions: P.
    num_micro_batches: M.
    orders: for each device its slots, forward passes before their backward
      passes.

  Returns:
    The table.

  Raises:
    ValueError: where devices would wait for each other forever.
  """
  last = num_partitions - 1
  never = float('inf')
  # The tick from which on a pass has its input, [partition][micro-batch].
  forward = [[never] * num_micro_batches for _ in range(num_partitions)]
  backward = [[never] * num_micro_batches for _ in range(num_partitions)]
  forward[0] = [0] * num_micro_batches
  backward[last] = [0] * num_micro_batches
  positions = [0] * len(orders)
  working = list(range(len(orders)))
  ticks = []
  while working:
    now = len(ticks)
    row = [None] * len(orders)
    finished = []
    for device in working:
      slot = orders[device][positions[device]]
      micro_batch, partition, direction = slot
      if direction == FORWARD:
        if forward[partition][micro_batch] > now:
          continue
        if partition < last:
          forward[partition + 1][micro_batch] = now + 1
      else:
        if backward[partition][micro_batch] > now:
          continue
        if partition > 0:
          backward[partition - 1][micro_batch] = now + 1
      row[device] = slot
      positions[device] += 1
      if positions[device] == len(orders[device]):
        finished.append(device)
    if not any(row):
      waiting = [str(orders[d][positions[d]]) for d in working]
      raise ValueError(
        f'schedule {name}: each of these waits for another: '
        + ', '.join(waiting)
      )
    ticks.append(tuple(row))
    working = [device for device in working if device not in finished]
  return Schedule(name, num_partitions, num_micro_batches, tuple(ticks))
