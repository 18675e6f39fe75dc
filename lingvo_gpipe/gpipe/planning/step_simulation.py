"""How long the training loop takes, row by row. Pure Python.

`schedule.StepTime` plays a schedule: a pass waits for what it needs, and things
that are sent are on their way side by side. This plays the loop that executes
it (loop.py, loop_table.py), and links that carry one thing after the other:

  - A partition goes through its rows in order. A pass waits for its device, and
    for all that was sent to it in the rows before, needed or not.
  - A recomputation waits for what its forward pass would, not for the gradient.
  - The last partition's backward pass follows its forward pass.
  - Devices send while they compute. A border has a link for each direction,
    which is busy for the seconds of a message and delivers it `latency` later.

Not played are the bounds that TensorFlow sets to the number of rows that are
open at a time, and what a device does for its messages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lingvo_gpipe.gpipe.schedules import loop_table


class PassSeconds(NamedTuple):
  """Seconds of a partition's work for one micro-batch, and of its messages.

  Attributes:
    forward: of the forward pass.
    backward: of the backward pass, without any recomputation.
    recompute: of what is computed again before it; 0 for nothing.
    sending: of the outputs on the link to the next partition, which gradients
      need on their way back, too. Of the last partition nothing.
  """

  forward: float
  backward: float
  recompute: float = 0.0
  sending: float = 0.0


@dataclasses.dataclass(frozen=True)
class Simulation:
  """A played step.

  Attributes:
    seconds: from the first start to the last end.
    busy: of each device, seconds in which it computes.
  """

  seconds: float
  busy: tuple[float, ...]

  @property
  def bubble(self) -> float:
    """Share of the devices' time in which they do not compute."""
    total = len(self.busy) * self.seconds
    return 1 - sum(self.busy) / total if total else 0.0


class _Link:
  """One direction of a border: what is sent arrives in order."""

  def __init__(self, seconds: float, latency: float):
    self._seconds = seconds
    self._latency = latency
    self._free = 0.0
    # When all that was sent so far has arrived.
    self.arrived = 0.0

  def Send(self, now: float) -> None:
    self._free = max(self._free, now) + self._seconds
    self.arrived = self._free + self._latency


def Simulate(
  rows: loop_table.LoopTable,
  passes: Sequence[PassSeconds],
  latency: float = 0.0,
) -> Simulation:
  """Plays a step.

  Args:
    rows: the loop's table.
    passes: of each partition.
    latency: seconds from the end of a message's transfer to its arrival.

  Returns:
    The Simulation.

  Raises:
    ValueError: where there are not as many passes as partitions.
  """
  num_partitions = rows.schedule.num_partitions
  if len(passes) != num_partitions:
    raise ValueError(
      f'passes has {len(passes)} entries for {num_partitions} partitions; give '
      'one for each'
    )
  last, num_devices = num_partitions - 1, rows.schedule.num_devices
  free, busy = [0.0] * num_devices, [0.0] * num_devices
  # By border, the one after partition k being the k-th.
  forth = [_Link(p.sending, latency) for p in passes[:last]]
  back = [_Link(p.sending, latency) for p in passes[:last]]

  def _Work(device: int, ready: float, seconds: float) -> float:
    busy[device] += seconds
    free[device] = max(free[device], ready) + seconds
    return free[device]

  # What had arrived of all rows but the one before.
  earlier = [0.0] * num_partitions
  for forward, backward in zip(
    _Active(rows.forward), _Active(rows.backward), strict=True
  ):
    arrived = [0.0, *(link.arrived for link in forth)]
    returned = [link.arrived for link in back]
    for k in forward:
      if k < last:
        forth[k].Send(_Work(k % num_devices, arrived[k], passes[k].forward))
    for k in backward:
      device, seconds = k % num_devices, passes[k]
      if k == last:
        both = seconds.forward + seconds.recompute + seconds.backward
        end = _Work(device, arrived[k], both)
      else:
        if seconds.recompute:
          _Work(device, earlier[k], seconds.recompute)
        end = _Work(device, returned[k], seconds.backward)
      if k > 0:
        back[k - 1].Send(end)
    earlier = arrived
  return Simulation(max(free), tuple(busy))


def _Active(table: np.ndarray) -> list[list[int]]:
  """For each row the partitions that have a pass in it, in order."""
  active: list[list[int]] = [[] for _ in table]
  for row, partition in np.argwhere(table >= 0).tolist():
    active[row].append(partition)
  return active
