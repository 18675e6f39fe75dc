"""Times of a step as the engine would record them, made up for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lingvo_gpipe.gpipe.schedules import schedule, schedule_table


def Times(
  table: schedule_table.Schedule,
  forward: Sequence[float],
  backward: Sequence[float],
  recompute: Sequence[float],
  *,
  transfer: float = 0.0,
  overhead: float = 0.0,
  jitter: float = 0.0,
  seed: int = 0,
  epoch: float = 0.0,
) -> np.ndarray:
  """Plays a step through a schedule.

  Args:
    table: the schedule.
    forward: seconds of each partition's forward pass.
    backward: seconds of each partition's backward pass.
    recompute: seconds of each partition's recomputation, 0 for none.
    transfer: seconds from the end of a pass to its output's arrival elsewhere.
    overhead: seconds between two passes of a device.
    jitter: standard deviation of the logarithm of each pass's seconds.
    seed: of the jitter.
    epoch: when the step starts.

  Returns:
    float64 [num_partitions, num_micro_batches, 6], as in loop_data.LoopResult.
  """
  random = np.random.default_rng(seed)
  last = table.num_partitions - 1

  def _Seconds(seconds: float) -> float:
    return seconds * np.exp(jitter * random.standard_normal())

  times = np.zeros([table.num_partitions, table.num_micro_batches, 6])
  free = [0.0] * table.num_devices
  for _, device, (i, k, direction) in table.Slots():
    if direction == schedule_table.FORWARD:
      if k < last:
        start = free[device]
        if k > 0:
          start = max(start, times[k - 1, i, 1] + transfer)
        times[k, i, :2] = start, start + _Seconds(forward[k])
        free[device] = times[k, i, 1] + overhead
      continue
    start = free[device]
    if k == last:
      if k > 0:
        start = max(start, times[k - 1, i, 1] + transfer)
      times[k, i, :2] = start, start + _Seconds(forward[k])
      start = times[k, i, 1]
    recomputed = start + _Seconds(recompute[k])
    begin = recomputed
    if k < last:
      begin = max(begin, times[k + 1, i, 5] + transfer)
    times[k, i, 2:] = start, recomputed, begin, begin + _Seconds(backward[k])
    free[device] = times[k, i, 5] + overhead
  return epoch + times


def Uniform(
  name: str,
  num_partitions: int,
  num_micro_batches: int,
  num_devices: int | None = None,
  *,
  recompute: bool = True,
  **kwargs,
) -> np.ndarray:
  """Times of equal partitions: F takes 1 second, B takes 2.

  Args:
    name: of the schedule.
    num_partitions: P.
    num_micro_batches: M.
    num_devices: D; None takes P.
    recompute: whether all partitions but the last compute F again.
    **kwargs: for Times.

  Returns:
    As of Times.
  """
  table = schedule.MakeSchedule(
    name, num_partitions, num_micro_batches, num_devices
  )
  again = [float(recompute)] * (num_partitions - 1) + [0.0]
  ones = [1.0] * num_partitions
  return Times(table, ones, [2.0] * num_partitions, again, **kwargs)


def Workers(num_partitions: int, num_devices: int | None = None) -> list[str]:
  """Devices of worker processes, one after the other, for the partitions."""
  num_devices = num_devices or num_partitions
  return [
    f'/job:worker/replica:0/task:{k % num_devices}/device:CPU:0'
    for k in range(num_partitions)
  ]
