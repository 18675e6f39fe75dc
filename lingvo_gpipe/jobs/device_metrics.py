"""What devices do with their time and memory, measured now and then in a run.

bubble                 share of the devices' time in a step in which they did
                       not compute
memory_mib/trainer     peak of this process's resident memory since its start
memory_mib/worker_1    likewise of a worker's process, on any machine
memory_mib/GPU_0       peak of what TensorFlow has taken of a device of this
                       process; TPU_0 likewise
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from lingvo_gpipe.jobs import step_timing
from lingvo_gpipe.workers import (
  local_workers,
  process_memory,
  remote_memory,
)

_MIB = 2.0**20


class DeviceMetrics:
  """Measures the devices of a network.

  Args:
    net: a GPipe with a plan.
    workers: the processes that it runs on; None: on this one's devices.
  """

  def __init__(self, net: Any, workers: Any = None):
    self._net = net
    devices = [d for of_one in net.plan.replica_devices for d in of_one]
    self._local = None
    self._remote = remote_memory.RemoteMemory(devices)
    if isinstance(workers, local_workers.LocalWorkers):
      self._local, self._remote = workers, None
    # What tells of its memory: accelerators of this process.
    self._accelerators = []
    for name in dict.fromkeys(devices):
      spec = tf.DeviceSpec.from_string(name)
      if spec.device_type != 'CPU' and spec.job in (None, 'localhost'):
        self._accelerators.append(f'{spec.device_type}:{spec.device_index}')

  def Measure(self, times: list[Any] | None) -> dict[str, float]:
    """The numbers after a step; takes some milliseconds, and waits for it.

    Args:
      times: of the step, see loop_data.LoopResult; None: not known.

    Returns:
      {name: share of the time, or MiB}, without what cannot be measured.
    """
    return {**self._Bubble(times), **self._Memory()}

  def _Bubble(self, times: list[Any] | None) -> dict[str, float]:
    if times is None:
      return {}
    try:
      return {'bubble': step_timing.MakeTimeline(self._net, times).bubble}
    except ValueError:  # Passes that are shorter than the clock's ticks.
      return {}

  def _Workers(self) -> dict[int, process_memory.Usage]:
    if self._local is not None:
      return dict(enumerate(self._local.MemoryUsage()))
    return self._remote.Read()

  def _Memory(self) -> dict[str, float]:
    peaks = {}
    try:
      peaks['trainer'] = process_memory.Read(os.getpid()).peak
      for k, usage in self._Workers().items():
        peaks[f'worker_{k}'] = usage.peak
    except (
      OSError,
      tf.errors.OpError,
    ):  # No Linux; or a worker has just ended, and others tell so.
      pass
    for name in list(self._accelerators):
      try:
        peak = tf.config.experimental.get_memory_info(name)['peak']
      except (ValueError, tf.errors.OpError):
        self._accelerators.remove(name)  # It does not count.
        continue
      peaks[name.replace(':', '_')] = peak
    return {f'memory_mib/{name}': peak / _MIB for name, peak in peaks.items()}
