"""Schedules by name, with their formulas, and the time that a step takes."""

from __future__ import annotations

from collections.abc import Sequence

from lingvo_gpipe.gpipe.schedules import schedule_makers, schedule_table

SCHEDULES = {
  'gpipe': schedule_makers.GPipe,
  '1f1b': schedule_makers.OneForwardOneBackward,
  'eager_1f1b': schedule_makers.EagerOneForwardOneBackward,
  'interleaved': schedule_makers.Interleaved,
}


def MakeSchedule(
  name: str,
  num_partitions: int,
  num_micro_batches: int,
  num_devices: int | None = None,
) -> schedule_table.Schedule:
  """The table of the schedule called `name`.

  Args:
    name: a key of SCHEDULES.
    num_partitions: P, 1 or more.
    num_micro_batches: M, 1 or more.
    num_devices: D, a divisor of P for 'interleaved', P for all others. None
      takes P.

  Returns:
    The table.

  Raises:
    ValueError: for an unknown name, or counts that are below 1 or do not fit
      each other.
  """
  _CheckName(name)
  if num_devices is None:
    num_devices = num_partitions
  if min(num_partitions, num_micro_batches, num_devices) < 1:
    raise ValueError(
      f'num_partitions={num_partitions}, '
      f'num_micro_batches={num_micro_batches} and '
      f'num_devices={num_devices} must be 1 or more'
    )
  if num_partitions % num_devices:
    raise ValueError(
      f'num_partitions={num_partitions} must be a multiple of '
      f'num_devices={num_devices}: each device gets as many partitions'
    )
  if name == 'interleaved':
    return schedule_makers.Interleaved(
      num_partitions, num_micro_batches, num_devices
    )
  _CheckChunks(name, num_partitions // num_devices)
  return SCHEDULES[name](num_partitions, num_micro_batches)


def _CheckName(name: str) -> None:
  if name not in SCHEDULES:
    raise ValueError(
      f'no schedule is called {name!r}; use one of {", ".join(SCHEDULES)}'
    )


def _CheckChunks(name: str, num_chunks: int) -> None:
  if num_chunks != 1 and name != 'interleaved':
    raise ValueError(
      f'schedule={name!r} has one partition on each device, not {num_chunks}; '
      "use schedule='interleaved', or num_partitions equal to num_devices"
    )


def BubbleFormula(
  name: str, num_devices: int, num_chunks: int, num_micro_batches: int
) -> float:
  """The idle share of the devices' time, were all passes equally long.

  (D - 1) / (V M + D - 1): with V = 1 it is GPipe's (arXiv 1811.06965, section
  2.3), and that of 1F1B, which only reorders; the one of interleaved schedules
  follows from section 2.2 of arXiv 2104.04473, whose bubble "fraction" is
  (D - 1) / (V M), relative to the time without the bubble. If M < D, not even
  one chunk of a device's work hides the way through the others, and the bubble
  is 1 - V M / (V D + M - 1).

  Args:
    name: a key of SCHEDULES.
    num_devices: D.
    num_chunks: V, partitions on each device; 1 except for 'interleaved'.
    num_micro_batches: M.

  Returns:
    The share, from 0 to 1.
  """
  _CheckName(name)
  _CheckChunks(name, num_chunks)
  work = num_chunks * num_micro_batches
  return 1 - work / max(
    work + num_devices - 1, num_chunks * num_devices + num_micro_batches - 1
  )


def InFlightFormula(
  name: str, num_devices: int, num_chunks: int, num_micro_batches: int
) -> list[int]:
  """How many micro-batches each partition must keep at the most.

  With k' = D - 1 - k devices after device k, that is M for 'gpipe' (arXiv
  1811.06965, section 2.3), min(M, k' + 1) for '1f1b' (arXiv 2006.09503, section
  3.2) and min(M, 2 k' + 1) for 'eager_1f1b'. For 'interleaved' it follows from
  the length of the warm-up, 2 k' + (V - 1) D passes where D divides M
  (arXiv 2104.04473, section 2.2): counted are those of the partition's forward
  passes that come before its first backward pass.

  Args:
    name: a key of SCHEDULES.
    num_devices: D.
    num_chunks: V, partitions on each device; 1 except for 'interleaved'.
    num_micro_batches: M.

  Returns:
    For each partition a bound, which is reached if all groups of an interleaved
    schedule are equally large, as where D divides M.
  """
  _CheckName(name)
  _CheckChunks(name, num_chunks)
  bounds = []
  groups = schedule_makers.Groups(num_devices, num_micro_batches)
  group = len(groups[0])
  for partition in range(num_devices * num_chunks):
    chunk, device = divmod(partition, num_devices)
    after = num_devices - 1 - device
    if name == 'gpipe':
      bound = num_micro_batches
    elif name == '1f1b':
      bound = after + 1
    elif name == 'eager_1f1b':
      bound = 2 * after + 1
    else:
      later_chunks = num_chunks - 1 - chunk
      passes = 2 * after + (num_chunks - 1 + later_chunks) * group + 1
      rounds, rest = divmod(passes, num_chunks * group)
      bound = rounds * group + min(max(rest - chunk * group, 0), group)
      if len(groups[-1]) < group:
        # A forward pass of the smaller groups comes that much earlier.
        bound += num_chunks - 1
    bounds.append(min(num_micro_batches, bound))
  return bounds


def StepTime(
  schedule: schedule_table.Schedule,
  forward: Sequence[float],
  backward: Sequence[float],
  recompute: Sequence[float],
  transfer: Sequence[float] | None = None,
) -> float:
  """How long a step takes when partitions need unequal times.

  Each device works through its slots in the order of the table, each as soon as
  its input has arrived. Recomputation needs no gradient and starts while the
  device waits for it. The last partition runs a micro-batch's forward pass
  right before its backward pass, in the latter's slot. Devices send while they
  compute.

  Args:
    schedule: the table, one that passes Check.
    forward: time of each partition's forward slot; 0 where the forward pass
      only happens together with the backward pass.
    backward: time of each partition's backward slot.
    recompute: time of each partition for what it runs in a backward slot before
      it needs the gradient; 0 for nothing.
    transfer: [num_partitions - 1], time from the end of a pass to its output's
      arrival at the other side of the border after each partition, in both
      directions; None for no time.

  Returns:
    The time from the first start to the last end.

  Raises:
    ValueError: if `transfer` is not as long as there are borders.
  """
  last = schedule.num_partitions - 1
  if transfer is None:
    transfer = [0.0] * last
  if len(transfer) != last:
    raise ValueError(
      f'transfer has {len(transfer)} times; it needs num_partitions - 1 = '
      f'{last}, one for each border'
    )
  # All of the last partition's work comes after what it waits for: its input.
  before_gradient = [*recompute[:last], 0.0]
  with_gradient = [
    *backward[:last],
    forward[last] + recompute[last] + backward[last],
  ]
  # When inputs and gradients arrive, [partition][micro-batch].
  start = [0.0] * schedule.num_micro_batches
  inputs = [start] + [start[:] for _ in range(last)]
  gradients = [start[:] for _ in range(last)] + [inputs[last]]
  free = [0.0] * schedule.num_devices
  for _, device, (micro_batch, partition, direction) in schedule.Slots():
    if direction == schedule_table.FORWARD:
      if partition == last:
        continue
      end = max(free[device], inputs[partition][micro_batch])
      end += forward[partition]
      inputs[partition + 1][micro_batch] = end + transfer[partition]
    else:
      end = max(
        free[device] + before_gradient[partition],
        gradients[partition][micro_batch],
      )
      end += with_gradient[partition]
      if partition > 0:
        gradients[partition - 1][micro_batch] = end + transfer[partition - 1]
    free[device] = end
  return max(free)
