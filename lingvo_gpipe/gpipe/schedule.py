"""Which partition runs which micro-batch when: schedules as plain tables.

A schedule is a table of clock ticks and devices. Each entry is a `Slot`: the
forward or the backward pass of one micro-batch through one partition, or None
where the device is idle. A generator makes the table of one kind of schedule
for K partitions and M micro-batches; everything else here (checks, bubble,
in-flight counts, predicted time, drawing) reads tables and works for any kind.

A device may hold several partitions: partition k belongs to device
k mod num_devices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

FORWARD = 'forward'
BACKWARD = 'backward'

# The paper finds the bubble negligible from here on (M >= 4 K, section 2.3).
MICRO_BATCHES_PER_PARTITION = 4

# Divisors named in an error message; those nearest to what was asked for.
_MAX_CHOICES = 16


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

  def Slots(self) -> list[tuple[int, int, Slot]]:
    """(tick, device, slot) of all that is not idle, in order of ticks."""
    return [
      (tick, device, slot)
      for tick, row in enumerate(self.ticks)
      for device, slot in enumerate(row)
      if slot is not None
    ]

  def BubbleFraction(self) -> float:
    """Share of idle entries, were all entries of equal length."""
    total = len(self.ticks) * self.num_devices
    return 1 - len(self.Slots()) / total

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
        device, or does not come after what it needs.
    """
    faults = []
    tick_of = {}
    for tick, device, slot in self.Slots():
      if slot in tick_of:
        faults.append(
          f'{slot} comes twice, in ticks {tick_of[slot]} and {tick}'
        )
      if device != slot.partition % self.num_devices:
        faults.append(f'{slot} is on device {device}')
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
    """Draws the table: a line per device, F and B with the micro-batch."""
    width = len(str(self.num_micro_batches - 1)) + 1
    lines = []
    for device in range(self.num_devices):
      entries = []
      for row in self.ticks:
        slot = row[device]
        text = '.' * width
        if slot is not None:
          text = f'{slot.direction[0].upper()}{slot.micro_batch}'
        entries.append(text.ljust(width))
      lines.append(f'device {device}  {" ".join(entries)}'.rstrip())
    return '\n'.join(lines)


def GPipe(num_partitions: int, num_micro_batches: int) -> Schedule:
  """The fill-drain schedule of the paper, its Figure 2c.

  All forward passes come first; then all backward passes, the last micro-batch
  first. 4 partitions, 4 micro-batches:

    device 0  F0 F1 F2 F3 .. .. .. .. .. .. B3 B2 B1 B0
    device 1  .. F0 F1 F2 F3 .. .. .. .. B3 B2 B1 B0 ..
    device 2  .. .. F0 F1 F2 F3 .. .. B3 B2 B1 B0 .. ..
    device 3  .. .. .. F0 F1 F2 F3 B3 B2 B1 B0 .. .. ..

  It takes 2 (M + K - 1) ticks, of which a device is idle in 2 (K - 1), and each
  partition keeps M micro-batches.

  Args:
    num_partitions: K.
    num_micro_batches: M.

  Returns:
    The table, with a device for each partition.
  """
  half = num_micro_batches + num_partitions - 1  # ticks of each direction
  ticks = []
  for tick in range(half):
    row = []
    for partition in range(num_partitions):
      micro_batch = tick - partition
      busy = 0 <= micro_batch < num_micro_batches
      row.append(Slot(micro_batch, partition, FORWARD) if busy else None)
    ticks.append(tuple(row))
  # The backward half is the forward half in a mirror.
  for row in ticks[::-1]:
    ticks.append(
      tuple(slot and slot._replace(direction=BACKWARD) for slot in row)
    )
  return Schedule('gpipe', num_partitions, num_micro_batches, tuple(ticks))


SCHEDULES = {'gpipe': GPipe}


def MakeSchedule(
  name: str, num_partitions: int, num_micro_batches: int
) -> Schedule:
  """The table of the schedule called `name`.

  Args:
    name: a key of SCHEDULES.
    num_partitions: K, 1 or more.
    num_micro_batches: M, 1 or more.

  Returns:
    The table.

  Raises:
    ValueError: for an unknown name or counts below 1.
  """
  if name not in SCHEDULES:
    raise ValueError(
      f'no schedule is called {name!r}; use one of {", ".join(SCHEDULES)}'
    )
  if num_partitions < 1 or num_micro_batches < 1:
    raise ValueError(
      f'num_partitions={num_partitions} and '
      f'num_micro_batches={num_micro_batches} must be 1 or more'
    )
  return SCHEDULES[name](num_partitions, num_micro_batches)


def GPipeBubble(num_partitions: int, num_micro_batches: int) -> float:
  """(K - 1) / (M + K - 1), the idle share of fill-drain (paper section 2.3)."""
  return (num_partitions - 1) / (num_micro_batches + num_partitions - 1)


def StepTime(
  schedule: Schedule,
  forward: Sequence[float],
  backward: Sequence[float],
  recompute: Sequence[float],
) -> float:
  """How long a step takes when partitions need unequal times.

  Each device works through its slots in the order of the table, each as soon as
  its input has arrived. Recomputation needs no gradient and starts while the
  device waits for it. Transfers take no time.

  Args:
    schedule: the table.
    forward: time of each partition's forward slot; 0 where the forward pass
      only happens together with the backward pass.
    backward: time of each partition's backward slot.
    recompute: time of each partition for what it runs in a backward slot before
      it needs the gradient; 0 for nothing.

  Returns:
    The time from the first start to the last end.
  """
  free = [0.0] * schedule.num_devices
  done = {}
  for _, device, (micro_batch, partition, direction) in schedule.Slots():
    if direction == FORWARD:
      source = (micro_batch, partition - 1, FORWARD)
      ready, time = free[device], forward[partition]
    else:
      source = (micro_batch, partition + 1, BACKWARD)
      ready, time = free[device] + recompute[partition], backward[partition]
    free[device] = max(ready, done.get(source, 0.0)) + time
    done[micro_batch, partition, direction] = free[device]
  return max(free)


def ChooseNumMicroBatches(
  batch_size: int,
  num_partitions: int,
  num_micro_batches: int | None = None,
  micro_batch_size: int | None = None,
) -> int:
  """M for mini-batches of `batch_size`.

  Without a wish it is 4 K, as the paper advises; where that does not divide the
  mini-batch, the divisor nearest to 4 K, of two equally near ones the larger
  (it has the smaller bubble).

  Args:
    batch_size: N, examples of the mini-batch.
    num_partitions: K.
    num_micro_batches: the wish for M, or None.
    micro_batch_size: the wish for N / M, or None.

  Returns:
    M, a divisor of N.

  Raises:
    ValueError: for a wish that N cannot fulfil.
  """
  if batch_size < 1:
    raise ValueError(f'a mini-batch of {batch_size} examples cannot be split')
  for option, value in (
    ('num_micro_batches', num_micro_batches),
    ('micro_batch_size', micro_batch_size),
  ):
    if value is None:
      continue
    if value < 1:
      raise ValueError(f'{option}={value} must be 1 or more')
    choices = _Choices(batch_size, value)
    if value > batch_size:
      raise ValueError(
        f'{option}={value} is larger than the mini-batch of {batch_size}; '
        f'use one of {choices}'
      )
    if batch_size % value:
      raise ValueError(
        f'mini-batch {batch_size} is not divisible into {option}={value}; '
        f'use one of {choices}'
      )
  if num_micro_batches is not None and micro_batch_size is not None:
    if num_micro_batches * micro_batch_size != batch_size:
      raise ValueError(
        f'num_micro_batches={num_micro_batches} of '
        f'micro_batch_size={micro_batch_size} do not make a mini-batch of '
        f'{batch_size}; give only one of the two'
      )
  if num_micro_batches is not None:
    return num_micro_batches
  if micro_batch_size is not None:
    return batch_size // micro_batch_size
  target = MICRO_BATCHES_PER_PARTITION * num_partitions
  return NearestNumMicroBatches(batch_size, target)


def NearestNumMicroBatches(batch_size: int, wish: int) -> int:
  """M for a mini-batch that may have another size than the one of `wish`.

  For evaluation, where M changes no result.

  Args:
    batch_size: N, examples of the mini-batch, 1 or more.
    wish: M of the training mini-batch.

  Returns:
    The divisor of N nearest to `wish`, of two equally near ones the larger.
  """
  return _Nearest(_Divisors(batch_size), wish)[0]


def _Divisors(number: int) -> list[int]:
  small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
  return sorted({*small, *(number // d for d in small)})


def _Nearest(numbers: Sequence[int], target: int) -> list[int]:
  return sorted(numbers, key=lambda n: (abs(n - target), -n))


def _Choices(batch_size: int, wish: int) -> str:
  nearest = _Nearest(_Divisors(batch_size), wish)[:_MAX_CHOICES]
  return ', '.join(str(d) for d in sorted(nearest))
