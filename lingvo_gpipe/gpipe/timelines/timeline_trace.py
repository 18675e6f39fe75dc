"""A recorded step as a trace for ui.perfetto.dev or chrome://tracing.

The format is Chrome's "Trace Event Format" (the JSON object with traceEvents).
A device is a process and a partition a thread of it; a pass is a complete event
('X'), and arrows (flow events, 's' and 'f') lead from a forward pass to the
next partition's, and from a backward pass to that of the partition before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib
from lingvo_gpipe.gpipe.timelines import timeline_text

# Names of the viewers' own palette; Perfetto colours by the events' names.
_COLORS = {
  timeline_lib.FORWARD: 'thread_state_running',
  timeline_lib.RECOMPUTE: 'thread_state_runnable',
  timeline_lib.BACKWARD: 'thread_state_iowait',
}


def ToTrace(timeline: timeline_lib.Timeline) -> dict[str, Any]:
  """The trace.

  Args:
    timeline: of the step.

  Returns:
    Values ready for json.dump. Times are microseconds from the step's start.
  """
  # Passes come before the arrows: viewers bind those of equal times in order.
  return {
    'traceEvents': [
      *_Names(timeline),
      *_Passes(timeline),
      *_Arrows(timeline),
    ],
    'displayTimeUnit': 'ms',
    'otherData': {
      'recorded': timeline_text.Heading(timeline),
      'step': timeline_text.Seconds(timeline.step_seconds),
      'bubble': timeline_text.BubbleText(timeline),
    },
  }


def _Place(timeline: timeline_lib.Timeline, partition: int) -> dict[str, int]:
  """pid and tid.

  Perfetto knows threads by tid alone, and makes one with the pid of each
  process: all these numbers differ. It keeps 0 for the idle process.
  """
  device = timeline.device_names.index(timeline.devices[partition])
  return {'pid': 1 + device, 'tid': 1 + timeline.num_devices + partition}


def _Names(timeline: timeline_lib.Timeline) -> Iterator[dict[str, Any]]:
  for i, device in enumerate(timeline.device_names):
    yield from _Metadata({'pid': 1 + i}, 'process', f'device {i}: {device}', i)
  for k, policy in enumerate(timeline.policies):
    name = f'partition {k} (rematerialize {policy})'
    yield from _Metadata(_Place(timeline, k), 'thread', name, k)


def _Metadata(
  place: dict[str, int], what: str, name: str, index: int
) -> Iterator[dict[str, Any]]:
  for key, value in (('name', name), ('sort_index', index)):
    event = {'name': f'{what}_{key}', 'ph': 'M', **place}
    yield {**event, 'args': {key: value}}


def _Passes(timeline: timeline_lib.Timeline) -> Iterator[dict[str, Any]]:
  for event in timeline.events:
    start = _Microseconds(event.start)
    yield {
      'name': f'{event.kind} {event.micro_batch}',
      'cat': event.kind,
      'ph': 'X',
      'ts': start,
      # Of rounded times, so that passes never overlap.
      'dur': _Microseconds(event.end) - start,
      'cname': _COLORS[event.kind],
      'args': {
        'kind': event.kind,
        'micro_batch': event.micro_batch,
        'partition': event.partition,
        'device': event.device,
      },
      **_Place(timeline, event.partition),
    }


def _Arrows(timeline: timeline_lib.Timeline) -> Iterator[dict[str, Any]]:
  passes = {
    (event.kind, event.partition, event.micro_batch): event
    for event in timeline.events
  }
  number = 0
  for (kind, partition, micro_batch), source in passes.items():
    step = {timeline_lib.FORWARD: 1, timeline_lib.BACKWARD: -1}.get(kind)
    if step is None:
      continue
    target = passes.get((kind, partition + step, micro_batch))
    # Before its end, so that the source is still running.
    leaves = max(_Microseconds(source.start), _Microseconds(source.end) - 1)
    # Arrows into the past, of contradicting clocks, would confuse viewers.
    if target is None or _Microseconds(target.start) < leaves:
      continue
    number += 1
    name = 'activations' if step > 0 else 'gradients'
    arrow = {'name': name, 'cat': 'flow', 'id': number}
    yield {**arrow, 'ph': 's', 'ts': leaves, **_Place(timeline, partition)}
    yield {
      **arrow,
      'ph': 'f',
      'bp': 'e',  # To the pass that runs then, not to the next one.
      'ts': _Microseconds(target.start),
      **_Place(timeline, partition + step),
    }


def _Microseconds(seconds: float) -> int:
  """Whole ones, as viewers truncate fractions, and clocks count no finer."""
  return round(seconds * 1e6)
