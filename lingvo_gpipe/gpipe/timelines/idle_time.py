"""Where the time goes in which devices do not compute.

Before each pass a device may have been idle. If the pass needs something of
another device, the time until that was computed is waiting: for the pipeline to
fill, or for a slower partition. Then it is on its way, which is transfer, and
then the device could start: the rest is overhead, as is all of the time if what
the pass needs was on the device itself. After its last pass a device waits for
the end of the step.

Nobody records arrivals. How long things are on their way is seen where the
device was idle when they left: the median of these times counts for all.

A device that waits for another one, which waits for a transfer, is waiting: a
transfer may cost more than its own time.
"""

from __future__ import annotations

import collections
import itertools
import math
import statistics
from typing import NamedTuple

from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


class IdleTime(NamedTuple):
  """Seconds of a device in a step; they add up to what it was not busy.

  Attributes:
    waiting: for other devices to compute.
    transfer: for what they had computed to arrive.
    overhead: between passes, for nothing but the device itself.
  """

  waiting: float
  transfer: float
  overhead: float


def ByDevice(timeline: timeline_lib.Timeline) -> dict[str, IdleTime]:
  """The idle time of each device.

  Args:
    timeline: of the step.

  Returns:
    {device: idle time}.
  """
  gaps = _Gaps(timeline)
  on_the_way = _OnTheWay(gaps)
  idle = {}
  for device in timeline.device_names:
    waiting = transfer = overhead = 0.0
    for gap in gaps[device]:
      ready = min(max(gap.ready, gap.start), gap.end)
      arrival = gap.ready + on_the_way.get(gap.edge, 0.0)
      if gap.ready > gap.start:
        arrival = gap.end
      arrival = min(max(arrival, ready), gap.end)
      waiting += ready - gap.start
      transfer += arrival - ready
      overhead += gap.end - arrival
    last = max(e.end for e in timeline.events if e.device == device)
    waiting += timeline.step_seconds - last
    idle[device] = IdleTime(waiting, transfer, overhead)
  return idle


def Shares(timeline: timeline_lib.Timeline) -> IdleTime:
  """Shares of all devices' time; they add up to the bubble.

  Args:
    timeline: of the step.

  Returns:
    From 0 to 1 each.
  """
  total = timeline.num_devices * timeline.step_seconds
  columns = zip(*ByDevice(timeline).values(), strict=True)
  return IdleTime(*(sum(column) / total for column in columns))


class _Gap(NamedTuple):
  """Idle time before a pass.

  Attributes:
    start: end of the device's pass before.
    end: start of the pass.
    ready: when another device had computed what the pass needs; -infinity if
      it needs nothing of another device.
    edge: (kind, partition) of the pass, the same for all micro-batches.
  """

  start: float
  end: float
  ready: float
  edge: tuple[str, int]


def _Gaps(timeline: timeline_lib.Timeline) -> dict[str, list[_Gap]]:
  """Before each pass, by device."""
  ends = {(e.kind, e.partition, e.micro_batch): e.end for e in timeline.events}
  gaps = {device: [] for device in timeline.device_names}
  now = dict.fromkeys(timeline.device_names, 0.0)
  for event in timeline.events:
    needed = _Needs(timeline, event)
    ready = -math.inf
    if needed is not None and timeline.devices[needed[1]] != event.device:
      # What took no time is no event; then all is waiting.
      ready = ends.get(needed, event.start)
    start = now[event.device]
    gaps[event.device].append(
      _Gap(start, max(start, event.start), ready, (event.kind, event.partition))
    )
    now[event.device] = max(start, event.end)
  return gaps


def _OnTheWay(gaps: dict[str, list[_Gap]]) -> dict[tuple[str, int], float]:
  """For each edge how long things are on their way."""
  seen = collections.defaultdict(list)
  upper = collections.defaultdict(list)
  for gap in itertools.chain.from_iterable(gaps.values()):
    if gap.ready > -math.inf:
      upper[gap.edge].append(gap.end - gap.ready)
      if gap.ready > gap.start:
        seen[gap.edge].append(gap.end - gap.ready)
  # Where a device was never idle, all that is known is an upper bound.
  return {
    edge: statistics.median(seen[edge]) if edge in seen else min(upper[edge])
    for edge in upper
  }


def _Needs(
  timeline: timeline_lib.Timeline, event: timeline_lib.Event
) -> tuple[str, int, int] | None:
  """(kind, partition, micro-batch) of what another partition must have done."""
  last = timeline.num_partitions - 1
  if event.kind == timeline_lib.FORWARD and event.partition > 0:
    return timeline_lib.FORWARD, event.partition - 1, event.micro_batch
  if event.kind == timeline_lib.BACKWARD and event.partition < last:
    return timeline_lib.BACKWARD, event.partition + 1, event.micro_batch
  return None
