"""Device strings: taken apart, put in one spelling, ordered.

'/device:GPU:1' is a device of this process,
'/job:worker/replica:0/task:3/device:TPU:1' one of a worker of a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

WORKER_JOB = 'worker'
CLIENT_JOB = 'client'

# Devices that compute. A replicated core is the core of that number in each
# replica of a replicated TPU program. Plug-ins may bring others.
_TYPES = ('CPU', 'GPU', 'TPU', 'TPU_REPLICATED_CORE')
_EXAMPLES = '/device:GPU:0 or /job:worker/replica:0/task:3/device:TPU:1'
_DEVICE = re.compile(
  r'(?:/job:(?P<job>[a-z]\w*))?'
  r'(?:/replica:(?P<replica>\d+))?'
  r'(?:/task:(?P<task>\d+))?'
  r'(?:/device:|/?(?=[cgt]pu:))(?P<type>[a-z]\w*):(?P<index>\d+)',
  re.IGNORECASE | re.ASCII,
)


class Device(NamedTuple):
  """A device string in parts, which order devices: by task, then by index."""

  job: str
  replica: int
  task: int
  type: str
  index: int

  def __str__(self) -> str:
    device = f'/device:{self.type}:{self.index}'
    if not self.job:
      return device
    return f'/job:{self.job}/replica:{self.replica}/task:{self.task}{device}'


def WorkerDevices(
  num_workers: int, kind: str = 'cpu', devices_per_worker: int = 1
) -> list[str]:
  """The devices of the workers of a cluster, in the order of the workers.

  Args:
    num_workers: tasks of the job 'worker'.
    kind: 'cpu', 'gpu' or 'tpu'.
    devices_per_worker: how many of that kind each has.

  Returns:
    Device strings.
  """
  return [
    str(Device(WORKER_JOB, 0, task, kind.upper(), index))
    for task in range(num_workers)
    for index in range(devices_per_worker)
  ]


def Sorted(devices: Sequence[str]) -> list[str]:
  """Device strings in one spelling, by task and index as numbers.

  Args:
    devices: in any order.

  Returns:
    Those without a job first, then job by job.

  Raises:
    ValueError: for a string that names no device.
  """
  return [str(device) for device in sorted(map(Parse, devices))]


def HostOf(device: str) -> str:
  """The processor of the worker that a device belongs to.

  Args:
    device: a device string.

  Returns:
    A device string; '' for a device of this process, where TensorFlow may
    choose.

  Raises:
    ValueError: for a string that names no device.
  """
  parsed = Parse(device)
  return str(parsed._replace(type='CPU', index=0)) if parsed.job else ''


def Parse(device: str) -> Device:
  """The parts of a string that names one device.

  Args:
    device: in any spelling that TensorFlow knows.

  Returns:
    Its parts.

  Raises:
    ValueError: for a string that names no device.
  """
  match = _DEVICE.fullmatch(device)
  if not match:
    raise ValueError(
      f'{device!r} does not name one device; write for example {_EXAMPLES}'
    )
  job, replica, task, kind, index = match.groups()
  if job is None and (replica or task) or job is not None and task is None:
    raise ValueError(
      f'{device!r} names a task without its job, or a job without a task; '
      f'write for example {_EXAMPLES}'
    )
  kind = kind.upper()
  if kind not in _TYPES and kind not in _PluggedInTypes():
    raise ValueError(
      f'{device!r}: a partition cannot be on a device of type {kind}; use one '
      f'of {", ".join(sorted({*_TYPES, *_PluggedInTypes()}))}'
    )
  return Device(job or '', int(replica or 0), int(task or 0), kind, int(index))


def _PluggedInTypes() -> set[str]:
  """Types of devices that plug-ins have added to this TensorFlow."""
  return {d.device_type for d in tf.config.list_physical_devices()}
