"""Partitions to devices of this process.

Devices are TensorFlow's device strings, '/device:GPU:1' or, on a worker of a
cluster, '/job:worker/replica:0/task:3/device:TPU:1'. The engine only ever sees
the list with one string per partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from absl import logging

# Values of --run_locally, in the order of preference when it is not set.
_KINDS = ('tpu', 'gpu', 'cpu')


def ConfigureLogicalCpus(num_devices: int) -> None:
  """Lets TensorFlow show the processor as `num_devices` CPU devices.

  They share the process's threads: a place to run and test a pipeline, not a
  faster one. Must come before anything that initialises TensorFlow's devices.

  Args:
    num_devices: how many there shall be at least.

  Raises:
    RuntimeError: where TensorFlow has been initialised with fewer.
  """
  cpu = tf.config.list_physical_devices('CPU')[0]
  configured = tf.config.get_logical_device_configuration(cpu) or []
  if len(configured) >= num_devices:
    return
  try:
    tf.config.set_logical_device_configuration(
      cpu, [tf.config.LogicalDeviceConfiguration()] * num_devices
    )
  except RuntimeError as e:
    existing = len(tf.config.list_logical_devices('CPU'))
    if existing >= num_devices:
      return
    raise RuntimeError(
      f'{num_devices} logical CPU devices are needed, but TensorFlow has been '
      f'initialised with {existing} already; call ConfigureLogicalCpus('
      f'{num_devices}) at the start of the program, before any tensor is made'
    ) from e


def LocalDevices(
  num_partitions: int,
  run_locally: str = '',
  available: Sequence[str] | None = None,
) -> list[str]:
  """A device of this process for each partition.

  Logs a warning where accelerators would stay unused.

  Args:
    num_partitions: K.
    run_locally: 'cpu', 'gpu' or 'tpu' (a device is a TPU core); '' takes the
      first kind of TPU, GPU, CPU of which there are enough.
    available: names of all devices; None asks TensorFlow, which initialises it.

  Returns:
    K device strings.

  Raises:
    ValueError: where there are fewer devices than partitions.
  """
  if run_locally and run_locally not in _KINDS:
    raise ValueError(
      f'run_locally={run_locally!r} (--run_locally) must be cpu, gpu or tpu'
    )
  if available is None:
    available = [d.name for d in tf.config.list_logical_devices()]
  by_kind = {kind: _OfKind(available, kind) for kind in _KINDS}
  kinds = [run_locally] if run_locally else list(_KINDS)
  for kind in kinds:
    if len(by_kind[kind]) >= num_partitions:
      warning = UnusedDevicesWarning(by_kind[kind], num_partitions)
      if warning:
        logging.warning('%s', warning)
      return by_kind[kind][:num_partitions]
  found = ', '.join(f'{len(by_kind[k])} {k.upper()}' for k in kinds)
  hint = ''
  if 'cpu' in kinds:
    hint = (
      '; for logical CPU devices call placement.ConfigureLogicalCpus('
      f'{num_partitions}) at the start of the program'
    )
  raise ValueError(
    f'num_partitions={num_partitions} (--worker_split_size) needs a device for '
    f'each partition, but this process has {found} (--run_locally={run_locally}'
    f'); set it to the number of devices or less{hint}'
  )


def UnusedDevicesWarning(devices: Sequence[str], num_partitions: int) -> str:
  """Text on the accelerators that a pipeline leaves idle; '' if it does not.

  Args:
    devices: all of the kind that is used.
    num_partitions: K; the first K devices are taken.

  Returns:
    A sentence for the log.
  """
  unused = list(devices[num_partitions:])
  # More logical CPU devices add nothing: they are the same processor.
  if not unused or tf.DeviceSpec.from_string(unused[0]).device_type == 'CPU':
    return ''
  return (
    f'{len(unused)} of {len(devices)} devices stay idle ({", ".join(unused)}): '
    f'num_partitions={num_partitions} (--worker_split_size) uses one for each '
    'partition'
  )


def CheckDevices(devices: Sequence[str], num_partitions: int) -> list[str]:
  """Checks device strings that were given by hand.

  Args:
    devices: one for each partition, local or on any task of a cluster.
    num_partitions: K.

  Returns:
    The first K, each as TensorFlow writes it.

  Raises:
    ValueError: for a string that names no device, and for fewer than K.
  """
  if len(devices) < num_partitions:
    raise ValueError(
      f'{len(devices)} devices ({", ".join(devices)}) for num_partitions='
      f'{num_partitions} (--worker_split_size): each partition needs one; a '
      'device may be listed more than once'
    )
  return [_Checked(device) for device in devices[:num_partitions]]


def _Checked(device: str) -> str:
  try:
    spec = tf.DeviceSpec.from_string(device)
  except ValueError as e:
    raise ValueError(
      f'{device!r} is not a device; write for example /device:GPU:0 or '
      '/job:worker/replica:0/task:3/device:TPU:1'
    ) from e
  if spec.device_type is None or spec.device_index is None:
    raise ValueError(
      f'{device!r} does not name one device; add its type and index, for '
      'example /device:CPU:0'
    )
  return spec.to_string()


def _OfKind(names: Sequence[str], kind: str) -> list[str]:
  """Those of this process of one kind, by index."""
  devices = []
  for name in names:
    spec = tf.DeviceSpec.from_string(name)
    local = spec.job in (None, 'localhost')
    if local and spec.device_type == kind.upper():
      devices.append((spec.device_index, name))
  return [name for _, name in sorted(devices)]
