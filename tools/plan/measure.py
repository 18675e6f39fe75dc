"""What this machine's workers can do, measured for predictions.

Workers compute with one thread on one processor core (workers/local_workers).
So does this process after `UseOneThread`, and its cells take as long as theirs.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.workers import local_workers
from tools.plan import device as device_lib
from tools.plan import model_costs

# What the first step adds to a worker whatever its size: thread stacks, code
# that is read from disk, buffers.
FIRST_STEP_BYTES = 70 * 2**20

# Ends by itself where its parent does.
_PRODUCTS = """
import os, numpy
x = numpy.full([512, 512], 1e-3, numpy.float32)
parent = os.getppid()
while os.getppid() == parent:
  x @ x
"""

_RUNS = 5
_MESSAGE_BYTES = 4 * 2**20
_NUM_HOPS = 10


class Workers(NamedTuple):
  """Measured properties of workers.

  Attributes:
    link_speed: bytes a second from one to another.
    link_latency: seconds of a message of 4 bytes.
    memory_speed: bytes a second that an addition to a variable reads or writes.
    memory_overhead: resident bytes of a worker that has run a step, without
      what belongs to the step.
  """

  link_speed: float
  link_latency: float
  memory_speed: float
  memory_overhead: int


def UseOneThread() -> None:
  """Makes this process compute as a worker does; before it uses TensorFlow."""
  tf.config.set_visible_devices([], 'GPU')
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)


def Device(
  model: model_costs.NetCosts,
  micro_batch_sizes: Collection[int],
  progress: Callable[[str], None],
  *,
  num_workers: int,
  memory: int | None = None,
) -> device_lib.Device:
  """A worker of this machine; before this process is the client of any.

  Args:
    model: whose cells are measured.
    micro_batch_sizes: for which.
    progress: told what is going on.
    num_workers: see CellTimes.
    memory: bytes that it may take; None: no bound.

  Returns:
    The device.
  """
  cell_times = CellTimes(
    model, micro_batch_sizes, progress, num_workers=num_workers
  )
  progress('measuring two workers')
  return MakeDevice(cell_times, MeasureWorkers(), memory)


def MakeDevice(
  cell_times: dict[int, list[partition.CellTime]],
  workers: Workers,
  memory: int | None = None,
) -> device_lib.Device:
  """The device of what was measured."""
  return device_lib.Device(
    flops=None,
    memory=memory,
    cell_times=cell_times,
    **workers._asdict(),
  )


def CellTimes(
  model: model_costs.NetCosts,
  micro_batch_sizes: Collection[int],
  progress: Callable[[str], None],
  *,
  num_workers: int,
) -> dict[int, list[partition.CellTime]]:
  """Measures cells; before this process is the client of workers.

  Args:
    model: whose cells.
    micro_batch_sizes: for which.
    progress: told what is going on.
    num_workers: that will compute at the same time. Cores share caches and
      memory, so as many are busy while cells are measured.

  Returns:
    {size: times of all cells}.
  """
  cell_times = {}
  num_cores = len(os.sched_getaffinity(0))
  with _Busy(min(num_workers, num_cores) - 1):
    for size in sorted(micro_batch_sizes):
      progress(f'measuring cells on micro-batches of {size}')
      cell_times[size] = model.Measure(size)
  return cell_times


@contextlib.contextmanager
def _Busy(num_processes: int) -> Iterator[None]:
  """So many processes multiply matrices meanwhile."""
  processes = []
  try:
    for _ in range(num_processes):
      processes.append(
        subprocess.Popen(
          [sys.executable, '-c', _PRODUCTS],
          env={**os.environ, 'OPENBLAS_NUM_THREADS': '1'},
          stdin=subprocess.PIPE,
        )
      )
    yield
  finally:
    for process in processes:
      process.kill()
      process.communicate()


def MeasureWorkers() -> Workers:
  """Starts two workers, measures, and ends them.

  This process stays their client; variables that it made before are lost.
  """
  with local_workers.LocalWorkers(2) as workers:
    devices = cluster.Connect(workers.addresses).devices
    idle = max(usage.current for usage in workers.MemoryUsage())
    measured = Measure(devices, idle)
  return measured


def Measure(devices: Sequence[str], idle: int) -> Workers:
  """Measures connected workers.

  Args:
    devices: of two of them.
    idle: bytes that one had before it got work.

  Returns:
    What was found.
  """
  small = _Seconds(_Relay(devices, 4)) / _NUM_HOPS
  # What the relay computes on the way is no part of the message.
  there = _Seconds(_Relay(devices, _MESSAGE_BYTES))
  alone = _Seconds(_Relay(devices[:1] * 2, _MESSAGE_BYTES))
  large = (there - alone) / _NUM_HOPS
  return Workers(
    link_speed=_MESSAGE_BYTES / max(large - small, 1e-9),
    link_latency=small,
    memory_speed=_MemorySpeed(devices[0]),
    memory_overhead=idle + FIRST_STEP_BYTES,
  )


def _Relay(devices: Sequence[str], size: int) -> Callable[[], Any]:
  """A function that lets a tensor travel to and fro between two devices."""
  with tf.device(devices[0]):
    begin = tf.zeros([size // 4])

  @tf.function(autograph=False)
  def _Run():
    x = begin
    for hop in range(_NUM_HOPS):
      with tf.device(devices[(hop + 1) % 2]):
        x = -x
    with tf.device(devices[0]):
      return x[0]

  return _Run


def _MemorySpeed(device: str) -> float:
  """Of adding one array to another: both are read, one is written."""
  size = 64 * 2**20
  with tf.device(device):
    total = tf.Variable(tf.zeros([size // 4]))
    addend = tf.ones([size // 4])

  @tf.function(autograph=False)
  def _Run():
    with tf.device(device):
      total.assign_add(addend)
      return total[0]

  return 3 * size / _Seconds(_Run)


def _Seconds(run: Callable[[], Any]) -> float:
  """The median of some runs, after one that traces."""
  float(run())
  seconds = []
  for _ in range(_RUNS):
    start = time.perf_counter()
    float(run())
    seconds.append(time.perf_counter() - start)
  return statistics.median(seconds)
