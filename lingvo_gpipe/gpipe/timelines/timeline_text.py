"""A recorded step as a table for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lingvo_gpipe import text_table
from lingvo_gpipe.gpipe.timelines import idle_time
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def TimelineText(timeline: timeline_lib.Timeline) -> str:
  """What a step took, by partition and by device.

  Args:
    timeline: of the step.

  Returns:
    Several lines.
  """
  names = ShortNames(timeline.devices)
  partitions = [
    ('partition', 'device', 'policy', *timeline_lib.KINDS, 'share'),
    *(
      (
        str(k),
        names[timeline.devices[k]],
        timeline.policies[k],
        *map(Seconds, timeline.pass_seconds[k]),
        f'{timeline.shares[k]:.1%}',
      )
      for k in range(timeline.num_partitions)
    ),
  ]
  step = timeline.step_seconds
  devices = [
    ('device', 'busy', 'waiting', 'transfer', 'overhead'),
    *(
      (
        names[device],
        f'{timeline.busy_seconds[device] / step:.1%}',
        *(f'{seconds / step:.1%}' for seconds in idle),
      )
      for device, idle in idle_time.ByDevice(timeline).items()
    ),
  ]
  return '\n'.join(
    [
      Heading(timeline),
      f'A step: {Seconds(step)} from the first pass to the last. Mean seconds '
      'for a micro-batch:',
      *text_table.Aligned(partitions, left=(1, 2)),
      "Shares of each device's time:",
      *text_table.Aligned(devices, left=(0,)),
      BubbleText(timeline),
      *ClockText(timeline),
    ]
  )


def Heading(timeline: timeline_lib.Timeline) -> str:
  """What was recorded, in one line.

  Args:
    timeline: of the step.

  Returns:
    Model, K, D, M, schedule, and policy if all partitions have the same.
  """
  num_partitions, num_devices = timeline.num_partitions, timeline.num_devices
  parts = [timeline.model] if timeline.model else []
  partitions = _Plural(num_partitions, 'partition')
  if num_devices != num_partitions:
    partitions += f' on {_Plural(num_devices, "device")}'
  parts.append(partitions)
  parts.append(_Plural(timeline.num_micro_batches, 'micro-batch'))
  parts.append(f'schedule {timeline.schedule}')
  policies = sorted(set(timeline.policies))
  parts.append(f'rematerialize {"/".join(policies)}')
  return ', '.join(parts)


def BubbleText(timeline: timeline_lib.Timeline) -> str:
  """The bubble, measured and by the formula, in one line."""
  text = f'Bubble: measured {timeline.bubble:.1%}'
  if timeline.theoretical_bubble is not None:
    text += (
      f', {timeline.theoretical_bubble:.1%} in theory, were all passes '
      'equally long'
    )
  return f'{text}.'


def ClockText(timeline: timeline_lib.Timeline) -> list[str]:
  """What was found out about the devices' clocks: no line, one, or two."""
  lines = []
  if timeline.clock_shifts:
    names = ShortNames(list(timeline.clock_shifts))
    shifts = ', '.join(
      f'{names[clock]} by {"-" if shift < 0 else "+"}{Seconds(abs(shift))}'
      for clock, shift in timeline.clock_shifts.items()
    )
    lines.append(
      f'Clocks of different machines disagreed; shifted: {shifts}. Shares of '
      'transfer are lower bounds.'
    )
  if timeline.clock_violation:
    lines.append(
      f'Clocks contradict each other by {Seconds(timeline.clock_violation)}: '
      'one of them jumped during the step; record another one.'
    )
  return lines


def ShortNames(devices: Sequence[str]) -> dict[str, str]:
  """Names that fit beside a lane or into a column.

  Args:
    devices: full names.

  Returns:
    {device: 'worker 1', 'CPU:0' or the like}; the full names where shorter ones
    would be the same for two devices.
  """
  devices = list(dict.fromkeys(devices))
  parts = [
    dict(re.findall(r'/(job|task|device):([^/]+)', device))
    for device in devices
  ]
  one_each = len({part.get('device') for part in parts}) == 1
  names = []
  for device, part in zip(devices, parts, strict=True):
    words = [part[key] for key in ('job', 'task') if key in part]
    if 'device' in part and not (one_each and words):
      words.append(part['device'])
    names.append(' '.join(words) or device)
  if len(set(names)) < len(names):
    names = devices
  return dict(zip(devices, names, strict=True))


def Seconds(seconds: float) -> str:
  """A duration in three digits: 1.23 s, 45.6 ms, 789 us."""
  for factor, unit in ((1, 's'), (1e3, 'ms'), (1e6, 'us')):
    value = seconds * factor
    if value >= 0.9995 or unit == 'us':
      digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
      return f'{value:.{digits}f} {unit}' if value else '0'
  raise AssertionError('unreachable')


def _Plural(number: int, noun: str) -> str:
  if number == 1:
    return f'1 {noun}'
  return f'{number} {noun}{"es" if noun.endswith("ch") else "s"}'
