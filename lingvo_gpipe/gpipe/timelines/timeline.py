"""One recorded training step: which device ran which pass when.

The loop notes the time before and after each pass on the pass's device
(loop_data.LoopResult). `FromTimes` makes events of them, on one clock that
starts with the first event; all else here is read off the events. What goes
before and after the loop, such as the update of the weights, is not in it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lingvo_gpipe.gpipe.schedules import schedule as schedule_lib
from lingvo_gpipe.gpipe.timelines import clock_skew

FORWARD = 'forward'
RECOMPUTE = 'recompute'
BACKWARD = 'backward'
KINDS = (FORWARD, RECOMPUTE, BACKWARD)

_FORMAT = 'lingvo_gpipe.timeline.1'


class Event(NamedTuple):
  """A pass, or a recomputation.

  Attributes:
    device: its name.
    partition: index.
    micro_batch: index.
    kind: one of KINDS.
    start: seconds since the first event's start.
    end: likewise.
  """

  device: str
  partition: int
  micro_batch: int
  kind: str
  start: float
  end: float

  @property
  def seconds(self) -> float:
    return self.end - self.start


class PassSeconds(NamedTuple):
  """Mean seconds of a partition for one micro-batch."""

  forward: float
  recompute: float
  backward: float


@dataclasses.dataclass(frozen=True)
class Timeline:
  """A step.

  Attributes:
    model: name, for headings.
    schedule: name of the schedule.
    devices: of each partition; several may have the same.
    policies: of each partition, what it computes again.
    num_micro_batches: M.
    events: in order of their starts.
    clock_shifts: {clock: seconds}, which clocks were shifted to make sense of
      the times; see clock_skew.py.
    clock_violation: seconds by which clocks contradict each other all the same.
  """

  model: str
  schedule: str
  devices: tuple[str, ...]
  policies: tuple[str, ...]
  num_micro_batches: int
  events: tuple[Event, ...]
  clock_shifts: Mapping[str, float] = dataclasses.field(default_factory=dict)
  clock_violation: float = 0.0

  @property
  def num_partitions(self) -> int:
    return len(self.devices)

  @functools.cached_property
  def device_names(self) -> tuple[str, ...]:
    """Each device once, in the order of the partitions."""
    return tuple(dict.fromkeys(self.devices))

  @property
  def num_devices(self) -> int:
    return len(self.device_names)

  @property
  def is_round_robin(self) -> bool:
    """Whether partition k is on device k mod D, as schedules have it."""
    names = self.device_names
    return self.num_partitions % len(names) == 0 and all(
      device == names[k % len(names)] for k, device in enumerate(self.devices)
    )

  @functools.cached_property
  def step_seconds(self) -> float:
    """From the first start to the last end."""
    return max(event.end for event in self.events)

  @functools.cached_property
  def busy_seconds(self) -> dict[str, float]:
    """How long each device computed."""
    busy = dict.fromkeys(self.device_names, 0.0)
    for event in self.events:
      busy[event.device] += event.seconds
    return busy

  @property
  def bubble(self) -> float:
    """The measured share of the devices' time in which they did not compute."""
    busy = sum(self.busy_seconds.values())
    return 1 - busy / (self.num_devices * self.step_seconds)

  @property
  def theoretical_bubble(self) -> float | None:
    """The bubble, were all passes equally long; None if nobody knows.

    No formula covers several partitions on a device without 'interleaved'.
    """
    chunks = self.num_partitions // self.num_devices
    known = self.schedule in schedule_lib.SCHEDULES and self.is_round_robin
    if not known or (chunks > 1 and self.schedule != 'interleaved'):
      return None
    return schedule_lib.BubbleFormula(
      self.schedule, self.num_devices, chunks, self.num_micro_batches
    )

  @functools.cached_property
  def pass_seconds(self) -> tuple[PassSeconds, ...]:
    """Each partition's mean seconds for one micro-batch."""
    sums = collections.Counter()
    for event in self.events:
      sums[event.partition, event.kind] += event.seconds
    return tuple(
      PassSeconds(*(sums[k, kind] / self.num_micro_batches for kind in KINDS))
      for k in range(self.num_partitions)
    )

  @property
  def shares(self) -> tuple[float, ...]:
    """Each partition's share of all that was computed."""
    work = [sum(seconds) for seconds in self.pass_seconds]
    return tuple(w / sum(work) for w in work)

  def ToJson(self) -> dict[str, Any]:
    """All fields, ready for json.dump; events without their devices."""
    return {
      'format': _FORMAT,
      'model': self.model,
      'schedule': self.schedule,
      'devices': list(self.devices),
      'policies': list(self.policies),
      'num_micro_batches': self.num_micro_batches,
      'clock_shifts': dict(self.clock_shifts),
      'clock_violation': self.clock_violation,
      'events': [
        {
          'partition': event.partition,
          'micro_batch': event.micro_batch,
          'kind': event.kind,
          'start': event.start,
          'end': event.end,
        }
        for event in self.events
      ],
    }


def FromTimes(
  times: Sequence[np.ndarray] | np.ndarray,
  *,
  devices: Sequence[str],
  schedule: str,
  policies: Sequence[str] | str,
  model: str = '',
  tolerance: float = clock_skew.TOLERANCE_SECONDS,
) -> Timeline:
  """The timeline of a step.

  Args:
    times: for each partition float64 [num_micro_batches, 7], see
      loop_data.LoopResult, or without its last column. What took no time
      becomes no event.
    devices: of the partitions.
    schedule: name of the schedule.
    policies: of the partitions, or one for all.
    model: a name for headings.
    tolerance: seconds that clocks of different machines may disagree without
      being shifted.

  Returns:
    The timeline.

  Raises:
    ValueError: for times of another shape, that are not finite, end before they
      start, or show nothing that took any time.
  """
  times = np.asarray(np.stack(list(times)), np.float64)
  if isinstance(policies, str):
    policies = [policies] * len(devices)
  size = 2 * len(KINDS)
  if times.ndim != 3 or times.shape[2] - size not in (0, 1) or not times.size:
    raise ValueError(
      f'times have the shape {times.shape}; they must be [num_partitions, '
      f'num_micro_batches, {size + 1}]'
    )
  if not len(times) == len(devices) == len(policies):
    raise ValueError(
      f'times of {len(times)} partitions, {len(devices)} devices and '
      f'{len(policies)} policies: give one of each for a partition'
    )
  spans = times[..., :size].reshape([*times.shape[:2], len(KINDS), 2])
  if not np.all(np.isfinite(times)) or np.any(spans[..., 0] > spans[..., 1]):
    raise ValueError('times are not finite, or end before they start')
  # Differences of times since 1970 are exact to a quarter of a microsecond.
  corrected = clock_skew.Correct(times - times.min(), devices, tolerance)
  spans = corrected.times[..., :size].reshape(spans.shape)
  lasting = spans[..., 1] > spans[..., 0]
  if not lasting.any():
    raise ValueError('times show no pass that took any time')
  spans = spans - spans[..., 0][lasting].min()
  events = [
    Event(devices[k], k, i, KINDS[kind], *spans[k, i, kind].tolist())
    for k, i, kind in np.argwhere(lasting).tolist()
  ]
  return Timeline(
    model=model,
    schedule=schedule,
    devices=tuple(devices),
    policies=tuple(policies),
    num_micro_batches=times.shape[1],
    events=tuple(sorted(events, key=lambda e: (e.start, e.end, e.partition))),
    clock_shifts=corrected.shifts,
    clock_violation=corrected.violation,
  )


def FromJson(values: Mapping[str, Any]) -> Timeline:
  """What `Timeline.ToJson` made.

  Args:
    values: as json.load returns them.

  Returns:
    The timeline.

  Raises:
    ValueError: for anything else.
  """
  found = values.get('format') if isinstance(values, Mapping) else None
  if found != _FORMAT:
    raise ValueError(
      f'this is no recorded timeline: "format" is {found!r} instead of '
      f'{_FORMAT!r}'
    )
  try:
    fields = {key: x for key, x in values.items() if key != 'format'}
    fields['devices'] = tuple(values['devices'])
    fields['policies'] = tuple(values['policies'])
    fields['events'] = ()
    timeline = Timeline(**fields)
    events = tuple(_Event(timeline, event) for event in values['events'])
    if not events or len(timeline.policies) != timeline.num_partitions:
      raise ValueError('no events, or not as many policies as devices')
  except (KeyError, TypeError, ValueError) as e:
    raise ValueError(
      f'this timeline is damaged: {type(e).__name__}: {e}'
    ) from e
  return dataclasses.replace(timeline, events=events)


def _Event(timeline: Timeline, values: Mapping[str, Any]) -> Event:
  partition = values['partition']
  if (
    partition not in range(timeline.num_partitions)
    or values['micro_batch'] not in range(timeline.num_micro_batches)
    or values['kind'] not in KINDS
    or not 0 <= values['start'] < values['end'] < math.inf
  ):
    raise ValueError(f'no event of this step: {dict(values)}')
  return Event(device=timeline.devices[partition], **values)


def Median(timelines: Sequence[Timeline]) -> Timeline:
  """Of several recorded steps the one of median length.

  Args:
    timelines: one or more.

  Returns:
    One of them; of an even number the shorter one of the two in the middle.

  Raises:
    ValueError: if there are none.
  """
  if not timelines:
    raise ValueError('no step was recorded')
  median = statistics.median_low(t.step_seconds for t in timelines)
  return next(t for t in timelines if t.step_seconds == median)
