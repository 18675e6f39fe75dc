"""Partitions to devices, of this process or of workers.

Devices are TensorFlow's device strings, '/device:GPU:1' or, on a worker of a
cluster, '/job:worker/replica:0/task:3/device:TPU:1'. The engine only ever sees
the list with one string per partition.

Where a schedule has several partitions on each device (interleaving), P of them
on D = P / V devices, partition p is on device p mod D.

R replicas of a pipeline take R x D devices: the first D are those of replica 0,
the next D those of replica 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from absl import logging

from lingvo_gpipe.gpipe import device_names

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
  *,
  partitions_per_device: int = 1,
  num_replicas: int = 1,
) -> list[str]:
  """A device of this process for each partition of each replica.

  Logs a warning where accelerators would stay unused.

  Args:
    num_partitions: K.
    run_locally: 'cpu', 'gpu' or 'tpu' (a device is a TPU core); '' takes the
      first kind of TPU, GPU, CPU of which there are enough.
    available: names of all devices; None asks TensorFlow, which initialises it.
    partitions_per_device: V.
    num_replicas: R.

  Returns:
    R x K device strings; where V > 1, the first R x D are all there are.

  Raises:
    ValueError: where there are fewer devices than R x K / V.
  """
  num_devices = num_replicas * _NumDevices(
    num_partitions, partitions_per_device
  )
  if run_locally and run_locally not in _KINDS:
    raise ValueError(
      f'run_locally={run_locally!r} (--run_locally) must be cpu, gpu or tpu'
    )
  if available is None:
    available = [d.name for d in tf.config.list_logical_devices()]
  by_kind = {kind: _OfKind(available, kind) for kind in _KINDS}
  kinds = [run_locally] if run_locally else list(_KINDS)
  for kind in kinds:
    if len(by_kind[kind]) >= num_devices:
      warning = UnusedDevicesWarning(by_kind[kind], num_devices)
      if warning:
        logging.warning('%s', warning)
      return RoundRobin(
        by_kind[kind][:num_devices], num_replicas * num_partitions
      )
  found = ', '.join(f'{len(by_kind[k])} {k.upper()}' for k in kinds)
  hint = ''
  if 'cpu' in kinds:
    hint = (
      '; for logical CPU devices call placement.ConfigureLogicalCpus('
      f'{num_devices}) at the start of the program'
    )
  each = 'a device for each partition'
  if partitions_per_device > 1:
    each = f'{num_devices} devices for {partitions_per_device} partitions each'
  needs = f'num_partitions={num_partitions} (--worker_split_size) needs {each}'
  if num_replicas > 1:
    needs = (
      f'{_Wanted(num_partitions, num_replicas)} need {num_devices} devices'
    )
  raise ValueError(
    f'{needs}, but this process has {found} (--run_locally={run_locally}); set '
    f'it to the number of devices or less{hint}'
  )


def UnusedDevicesWarning(devices: Sequence[str], num_used: int) -> str:
  """Text on the accelerators that a pipeline leaves idle; '' if it does not.

  Args:
    devices: all of the kind that is used.
    num_used: how many of them, the first ones, have partitions.

  Returns:
    A sentence for the log.
  """
  unused = list(devices[num_used:])
  # More logical CPU devices add nothing: they are the same processor.
  if not unused or device_names.Parse(unused[0]).type == 'CPU':
    return ''
  return (
    f'{len(unused)} of {len(devices)} devices stay idle ({", ".join(unused)}): '
    'num_partitions (--worker_split_size) and num_replicas '
    f'(--worker_replicas) give work to {num_used}'
  )


def TpuDevices(
  num_partitions: int,
  num_replicas: int,
  available: Sequence[str],
  source: str,
) -> list[str]:
  """A TPU core for each partition of each replica, host after host.

  Logs a warning where cores would stay unused.

  Args:
    num_partitions: K.
    num_replicas: R.
    available: names of all devices that there are, of any kind and in any
      order.
    source: where they are from, such as '--tpu=my-tpu'.

  Returns:
    R x K device strings, in the order of tasks and of the cores of each.

  Raises:
    ValueError: where there are fewer cores.
  """
  cores = device_names.Sorted(
    [
      name
      for name in available
      if tf.DeviceSpec.from_string(name).device_type == 'TPU'
    ]
  )
  needed = num_replicas * num_partitions
  if len(cores) < needed:
    hosts = len({device_names.Parse(core)._replace(index=0) for core in cores})
    raise ValueError(
      f'{_Wanted(num_partitions, num_replicas)} need {needed} TPU cores, but '
      f'{source} has {len(cores)}, on {hosts} hosts; make K x R that or less'
    )
  warning = UnusedDevicesWarning(cores, needed)
  if warning:
    logging.warning('%s', warning)
  return cores[:needed]


def CheckDevices(
  devices: Sequence[str], num_partitions: int, partitions_per_device: int = 1
) -> list[str]:
  """Checks device strings that were given by hand.

  Args:
    devices: one for each partition, local or on any task of a cluster; of
      those, the first K / V are used and may be all that is given.
    num_partitions: K.
    partitions_per_device: V.

  Returns:
    K device strings, each in one spelling: '/device:GPU:0', with
    '/job:worker/replica:0/task:3' before it where the device has a job.

  Raises:
    ValueError: for a string that names no device, and for too few.
  """
  num_devices = _NumDevices(num_partitions, partitions_per_device)
  if len(devices) < num_devices:
    each = 'each partition needs one; a device may be listed more than once'
    if partitions_per_device > 1:
      each = (
        f'{partitions_per_device} partitions on each need {num_devices} devices'
      )
    raise ValueError(
      f'{len(devices)} devices ({", ".join(devices)}) for num_partitions='
      f'{num_partitions} (--worker_split_size): {each}'
    )
  used = [str(device_names.Parse(device)) for device in devices[:num_devices]]
  return RoundRobin(used, num_partitions)


def ReplicaDevices(
  devices: Sequence[str],
  num_replicas: int,
  num_partitions: int,
  partitions_per_device: int = 1,
) -> list[list[str]]:
  """Checks device strings, and deals them out to replicas.

  Args:
    devices: replica after replica, for each as of CheckDevices.
    num_replicas: R.
    num_partitions: K.
    partitions_per_device: V.

  Returns:
    For each replica K device strings.

  Raises:
    ValueError: for a string that names no device, and for too few.
  """
  num_devices = _NumDevices(num_partitions, partitions_per_device)
  if num_replicas > 1 and len(devices) < num_replicas * num_devices:
    raise ValueError(
      f'{len(devices)} devices ({", ".join(devices)}) for '
      f'{_Wanted(num_partitions, num_replicas)}, which need '
      f'{num_replicas * num_devices}; a device may be listed more than once'
    )
  return [
    CheckDevices(
      devices[replica * num_devices : (replica + 1) * num_devices],
      num_partitions,
      partitions_per_device,
    )
    for replica in range(num_replicas)
  ]


def ClientDevice() -> str:
  """The processor of this process, as workers call it; '' without workers."""
  for device in tf.config.list_logical_devices('CPU'):
    if tf.DeviceSpec.from_string(device.name).job == device_names.CLIENT_JOB:
      return device.name
  return ''


def InputDevice() -> str:
  """The processor of this process, where mini-batches come from."""
  return ClientDevice() or '/device:CPU:0'


def _Wanted(num_partitions: int, num_replicas: int) -> str:
  return (
    f'num_replicas={num_replicas} (--worker_replicas) of num_partitions='
    f'{num_partitions} (--worker_split_size)'
  )


def RoundRobin(devices: Sequence[str], num_partitions: int) -> list[str]:
  """Partition p on device p mod D.

  Args:
    devices: D device strings.
    num_partitions: K.

  Returns:
    K device strings.
  """
  return [devices[p % len(devices)] for p in range(num_partitions)]


def _NumDevices(num_partitions: int, partitions_per_device: int) -> int:
  """D = K / V."""
  if partitions_per_device < 1 or num_partitions % partitions_per_device:
    raise ValueError(
      f'num_partitions={num_partitions} (--worker_split_size) must be a '
      f'multiple of the partitions per device, {partitions_per_device}'
    )
  return num_partitions // partitions_per_device


def _OfKind(names: Sequence[str], kind: str) -> list[str]:
  """Those of this process of one kind, by index."""
  devices = []
  for name in names:
    spec = tf.DeviceSpec.from_string(name)
    local = spec.job in (None, 'localhost', device_names.CLIENT_JOB)
    if local and spec.device_type == kind.upper():
      devices.append((spec.device_index, name))
  return [name for _, name in sorted(devices)]
