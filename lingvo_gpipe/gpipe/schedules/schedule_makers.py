"""The kinds of schedules: in which order each device does its work.

All have one pattern. A device starts with forward passes, its warm-up; then
forward and backward passes take turns; what is left in the end are backward
passes. The kinds differ in the length of the warm-up, and so in how many
micro-batches a partition keeps. In each direction micro-batches come in
ascending order, so sums over them are taken in the same order by all kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from lingvo_gpipe.gpipe.schedules import schedule_table

Slot = schedule_table.Slot


def GPipe(
  num_partitions: int, num_micro_batches: int
) -> schedule_table.Schedule:
  """Fill-drain: Huang et al., GPipe (arXiv 1811.06965), Figure 2c.

  All forward passes come first, then all backward passes. 4 partitions, 4
  micro-batches:

    device 0  F0 F1 F2 F3 .. .. .. .. .. .. B0 B1 B2 B3
    device 1  .. F0 F1 F2 F3 .. .. .. .. B0 B1 B2 B3 ..
    device 2  .. .. F0 F1 F2 F3 .. .. B0 B1 B2 B3 .. ..
    device 3  .. .. .. F0 F1 F2 F3 B0 B1 B2 B3 .. .. ..

  (The figure draws the backward passes in descending order, which is as fast.)

  Args:
    num_partitions: K.
    num_micro_batches: M.

  Returns:
    The table, with a device for each partition.
  """
  return _OnePerDevice(
    'gpipe', num_micro_batches, [num_micro_batches] * num_partitions
  )


def OneForwardOneBackward(
  num_partitions: int, num_micro_batches: int
) -> schedule_table.Schedule:
  """1F1B with flush: Narayanan et al., PipeDream-2BW (arXiv 2006.09503), 3.2.

  A partition runs a backward pass as soon as it can, and keeps no more
  micro-batches than there are partitions from it to the end. As fast as
  fill-drain. 4 partitions, 6 micro-batches:

    device 0  F0 F1 F2 F3 .. .. .. B0 F4 B1 F5 B2 .. B3 .. B4 .. B5
    device 1  .. F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3 .. B4 .. B5 ..
    device 2  .. .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5 B4 .. B5 .. ..
    device 3  .. .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .. .. ..

  Args:
    num_partitions: K.
    num_micro_batches: M.

  Returns:
    The table, with a device for each partition.
  """
  return _OnePerDevice(
    '1f1b', num_micro_batches, list(range(num_partitions))[::-1]
  )


def EagerOneForwardOneBackward(
  num_partitions: int, num_micro_batches: int
) -> schedule_table.Schedule:
  """1F1B with a longer warm-up, which hides transfers between devices.

  Each partition's warm-up is two forward passes longer than that of the next
  one, instead of one. While a micro-batch is on its way to the next partition
  and back, a partition has other work even if transfers take time. It keeps up
  to twice as many micro-batches for that. 4 partitions, 6 micro-batches:

    device 0  F0 F1 F2 F3 F4 F5 .. B0 .. B1 .. B2 .. B3 .. B4 .. B5
    device 1  .. F0 F1 F2 F3 F4 B0 F5 B1 .. B2 .. B3 .. B4 .. B5 ..
    device 2  .. .. F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 .. B4 .. B5 .. ..
    device 3  .. .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .. .. ..

  Args:
    num_partitions: K.
    num_micro_batches: M.

  Returns:
    The table, with a device for each partition.
  """
  return _OnePerDevice(
    'eager_1f1b',
    num_micro_batches,
    list(range(0, 2 * num_partitions, 2))[::-1],
  )


def Interleaved(
  num_partitions: int, num_micro_batches: int, num_devices: int
) -> schedule_table.Schedule:
  """Interleaved 1F1B: several partitions, called chunks, on each device.

  Narayanan et al., Efficient Large-Scale Language Model Training on GPU
  Clusters Using Megatron-LM (arXiv 2104.04473), section 2.2. The bubble is V
  times smaller, as the pipeline fills and drains in steps of a V-th of a
  device's work; V times as much is sent. 2 devices, 2 chunks, 4 micro-batches:

    device 0  chunk 0  F0 F1 .. .. F2 .. F3 .. .. B0 .. B1 .. .. .. .. B2 B3
    device 0  chunk 1  .. .. F0 F1 .. B0 .. B1 F2 .. F3 .. .. B2 .. B3 .. ..
    device 1  chunk 0  .. F0 F1 .. .. .. .. F2 B0 F3 B1 .. .. .. .. B2 B3 ..
    device 1  chunk 1  .. .. .. F0 B0 F1 B1 .. .. .. .. F2 B2 F3 B3 .. .. ..

  A device runs a group of micro-batches through one chunk, then through the
  next. Megatron-LM's groups are of as many micro-batches as there are devices;
  where that does not divide M, groups are larger here, and the bubble is still
  as small as it can be.

  Args:
    num_partitions: P, a multiple of num_devices.
    num_micro_batches: M.
    num_devices: D.

  Returns:
    The table.
  """
  num_chunks = num_partitions // num_devices
  groups = Groups(num_devices, num_micro_batches)

  def _Passes(device: int, direction: str, chunks: Iterable[int]) -> list[Slot]:
    return [
      Slot(micro_batch, chunk * num_devices + device, direction)
      for group in groups
      for chunk in chunks
      for micro_batch in group
    ]

  chunks = range(num_chunks)
  # The last device begins with backward passes when the first group has come to
  # its last chunk.
  last_warm_up = (num_chunks - 1) * len(groups[0])
  orders = [
    _TakingTurns(
      _Passes(device, schedule_table.FORWARD, chunks),
      _Passes(device, schedule_table.BACKWARD, chunks[::-1]),
      last_warm_up + 2 * (num_devices - 1 - device),
    )
    for device in range(num_devices)
  ]
  return schedule_table.FromOrders(
    'interleaved', num_partitions, num_micro_batches, orders
  )


def Groups(num_devices: int, num_micro_batches: int) -> list[range]:
  """The groups of micro-batches of an interleaved schedule.

  Groups smaller than D would leave devices idle between chunks.

  Args:
    num_devices: D.
    num_micro_batches: M.

  Returns:
    All micro-batches in groups of D if D divides M, else in as many groups of
    at least D as there can be, or a single one: nearly equal ones, the larger
    ones first.
  """
  num_groups = max(1, num_micro_batches // num_devices)
  size, num_larger = divmod(num_micro_batches, num_groups)
  sizes = [size + 1] * num_larger + [size] * (num_groups - num_larger)
  ends = list(itertools.accumulate(sizes))
  return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _OnePerDevice(
  name: str, num_micro_batches: int, warm_ups: Sequence[int]
) -> schedule_table.Schedule:
  """A schedule with one partition on each device."""
  micro_batches = range(num_micro_batches)
  orders = [
    _TakingTurns(
      [Slot(i, k, schedule_table.FORWARD) for i in micro_batches],
      [Slot(i, k, schedule_table.BACKWARD) for i in micro_batches],
      warm_up,
    )
    for k, warm_up in enumerate(warm_ups)
  ]
  return schedule_table.FromOrders(
    name, len(warm_ups), num_micro_batches, orders
  )


def _TakingTurns(
  forward: Sequence[Slot], backward: Sequence[Slot], warm_up: int
) -> list[Slot]:
  """`warm_up` forward passes; forward and backward in turns; what is left."""
  warm_up = min(warm_up, len(forward))
  order = list(forward[:warm_up])
  for pair in zip(forward[warm_up:], backward, strict=False):
    order.extend(pair)
  order.extend(backward[len(forward) - warm_up :])
  return order
