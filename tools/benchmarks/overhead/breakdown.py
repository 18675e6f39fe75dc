"""The time of a step, divided as the GPipe paper's breakdown does.

All are shares of the devices' time, from the call of a step to its return:

  computation      forward and backward passes
  recomputation    forward passes that are computed again
  load imbalance   what the others wait because one device has more to compute
  bubble           all other waiting of one device for another
  communication    what had been computed, but was still on its way
  weight update    measured alone
  setup            all else: the client's call, the mini-batch on its way to the
                   devices, what TensorFlow does between passes

The paper has no communication, which its links hide.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lingvo_gpipe.gpipe.timelines import idle_time
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

PARTS = (
  'computation',
  'recomputation',
  'bubble',
  'load imbalance',
  'communication',
  'setup',
  'weight update',
)


def Shares(
  timeline: timeline_lib.Timeline, seconds: float, update_seconds: float
) -> dict[str, float]:
  """Divides one step.

  Args:
    timeline: of its loop.
    seconds: of the step.
    update_seconds: of the update of the weights in it.

  Returns:
    {part: share}, which add up to 1.
  """
  total = timeline.num_devices * seconds
  again = sum(
    e.seconds for e in timeline.events if e.kind == timeline_lib.RECOMPUTE
  )
  busy = timeline.busy_seconds.values()
  idle = idle_time.ByDevice(timeline).values()
  waiting = sum(i.waiting for i in idle)
  imbalance = min(waiting, len(busy) * max(busy) - sum(busy))
  # A step that is faster than what it is made of was measured badly.
  update = min(update_seconds, max(0.0, seconds - timeline.step_seconds))
  parts = {
    'computation': sum(busy) - again,
    'recomputation': again,
    'bubble': waiting - imbalance,
    'load imbalance': imbalance,
    'communication': sum(i.transfer for i in idle),
    'weight update': len(busy) * update,
  }
  parts['setup'] = total - sum(parts.values())
  return {part: parts[part] / total for part in PARTS}


def Median(steps: Sequence[dict[str, float]]) -> dict[str, float]:
  """The typical step.

  Args:
    steps: of Shares.

  Returns:
    Medians, divided by their sum.
  """
  medians = {
    part: statistics.median(step[part] for step in steps) for part in PARTS
  }
  total = sum(medians.values())
  return {part: value / total for part, value in medians.items()}
