"""Clocks of several machines, shifted until no effect precedes its cause.

Each device notes times by its own clock. On one machine that is one clock; the
clocks of several machines may be milliseconds apart, and then a partition seems
to start before what it needs was computed. With o[c] added to clock c, a pass
that starts at s by clock b, and needs what ended at e by clock a, must have

  e + o[a] <= s + o[b],  hence  o[a] <= o[b] + (s - e).

The smallest s - e of each pair of clocks counts. Such difference constraints
are a graph, and shortest paths in it solve them (Bellman-Ford). Paths that may
start anywhere at length 0 set clocks back, none of them more than any such
solution must; in the reversed graph they yield the smallest shifts forward. The
one of the two that shifts less in all is taken.

Shifts are the least that the times prove: a transfer that seems to take no time
afterwards may have taken some.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Clocks of one machine agree; those of several, kept by NTP, to about this.
TOLERANCE_SECONDS = 1e-3

# Seconds; smaller shifts are rounding errors of sums.
_ROUNDING = 1e-9

# Columns of the times. The last one is when gradients left: the seventh, or
# without it the end of the backward pass.
_FORWARD_START, _FORWARD_END = 0, 1
_BACKWARD_START, _GRADIENTS_LEFT = 4, -1


class Correction(NamedTuple):
  """Times on one common clock.

  Attributes:
    times: float64 [num_partitions, num_micro_batches, 6 or 7].
    shifts: {clock: seconds that were added}, only of clocks that were shifted.
    violation: seconds by which a pass still precedes what it needs; above 0
      where no shifts can help, as when a clock jumped within the step.
  """

  times: np.ndarray
  shifts: dict[str, float]
  violation: float


def ClockOf(device: str) -> str:
  """The name of the clock that a device reads: that of its process.

  Args:
    device: such as '/job:worker/replica:0/task:1/device:CPU:0'.

  Returns:
    The name up to the task, '/job:worker/replica:0/task:1'; 'this process' for
    a device without a task.
  """
  process = re.match(r'.*/task:\d+', device)
  return process.group() if process else 'this process'


def Correct(
  times: np.ndarray,
  devices: Sequence[str],
  tolerance: float = TOLERANCE_SECONDS,
) -> Correction:
  """Shifts clocks where a pass precedes what it needs.

  Args:
    times: float64 [num_partitions, num_micro_batches, 6 or 7], seconds: start
      and end of each forward pass, recomputation and backward pass, and when
      its gradients left.
    devices: of the partitions.
    tolerance: seconds that a pass may start too early without any shift.

  Returns:
    The times, as they were if nothing is wrong or nothing helps.
  """
  clocks = [ClockOf(device) for device in devices]
  names = list(dict.fromkeys(clocks))
  index = np.array([names.index(clock) for clock in clocks])
  slack = _Slack(times, index, len(names))
  if slack.min() >= -tolerance:
    return Correction(times, {}, 0.0)
  shifts = {}
  offsets = _Offsets(slack, tolerance)
  if offsets is not None:
    times = times + offsets[index][:, np.newaxis, np.newaxis]
    shifts = {
      name: float(offset)
      for name, offset in zip(names, offsets, strict=True)
      if offset
    }
  violation = -float(_Slack(times, index, len(names)).min())
  return Correction(times, shifts, violation if violation > tolerance else 0.0)


def _Slack(
  times: np.ndarray, clocks: np.ndarray, num_clocks: int
) -> np.ndarray:
  """[cause, effect], the smallest time between them; infinite for none.

  What lies between times of one clock, no shift changes and no clock explains.
  """
  slack = np.full([num_clocks, num_clocks], np.inf)
  for k in range(len(times) - 1):
    before, after = times[k], times[k + 1]
    between = {
      (k, k + 1): after[:, _FORWARD_START] - before[:, _FORWARD_END],
      (k + 1, k): before[:, _BACKWARD_START] - after[:, _GRADIENTS_LEFT],
    }
    for (cause, effect), seconds in between.items():
      edge = clocks[cause], clocks[effect]
      if edge[0] != edge[1]:
        slack[edge] = min(slack[edge], seconds.min())
  return slack


def _Offsets(slack: np.ndarray, tolerance: float) -> np.ndarray | None:
  """Small shifts that satisfy the constraints; None if they contradict."""
  back = _ShortestPaths(slack, tolerance)
  forward = _ShortestPaths(slack.T, tolerance)
  if back is None or forward is None:
    return None
  # Of two clocks, it is the second that is said to be wrong.
  offsets = min(back, -forward, key=lambda x: (np.abs(x).sum(), abs(x[0])))
  return np.where(np.abs(offsets) < _ROUNDING, 0.0, offsets)


def _ShortestPaths(lengths: np.ndarray, tolerance: float) -> np.ndarray | None:
  """From anywhere to each node: paths[i] <= paths[j] + lengths[i, j]."""
  paths = np.zeros(len(lengths))
  for _ in range(len(lengths)):
    longer = paths
    paths = np.minimum(paths, (paths[np.newaxis] + lengths).min(axis=1))
  # Still shorter: there is a cycle of negative length.
  return None if np.any(longer - paths > tolerance) else paths
