"""The devices of this run: this machine's, or those of connected workers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe.gpipe import placement

# Input pipelines run on the host, whatever the partitions run on.
INPUT_DEVICE = '/device:CPU:0'


@dataclasses.dataclass(frozen=True)
class Cluster:
  """What the run may use.

  Attributes:
    kind: 'cpu', 'gpu' or 'tpu'.
    devices: a device string for each partition.
  """

  kind: str
  devices: tuple[str, ...]


def Local(kind: str, num_partitions: int) -> Cluster:
  """Prepares this machine's devices; before anything else uses TensorFlow.

  'cpu' shows the processor as a logical device for each partition and leaves
  GPUs alone.

  Args:
    kind: 'cpu', 'gpu' or 'tpu'.
    num_partitions: K.

  Returns:
    The Cluster.

  Raises:
    ValueError: where the machine has no such device, or fewer than partitions.
  """
  _KeepSums()
  if kind == 'cpu':
    tf.config.set_visible_devices([], 'GPU')
    placement.ConfigureLogicalCpus(num_partitions)
  elif kind == 'tpu':
    _InitializeTpus()
  elif not tf.config.list_physical_devices('GPU'):
    raise ValueError(
      '--run_locally=gpu: TensorFlow finds no GPU on this machine; check '
      'nvidia-smi and that TensorFlow was installed with CUDA, or use '
      '--run_locally=cpu'
    )
  devices = placement.LocalDevices(num_partitions, run_locally=kind)
  return Cluster(kind, tuple(devices))


def Workers(num_workers: int) -> Cluster:
  """The devices of CPU workers, before anything is connected to them.

  Args:
    num_workers: how many.

  Returns:
    The Cluster that Connect will give.
  """
  return Cluster('cpu', tuple(placement.WorkerDevices(num_workers)))


def Connect(addresses: Sequence[str]) -> Cluster:
  """Makes this process the client of CPU workers.

  What it places on the cluster's devices then runs in the workers. Its own
  logical devices stay, under the job 'client'. A process is the client of one
  cluster at a time: after connecting to other workers, none of which may be
  among the first, variables and functions made before are lost.

  Args:
    addresses: 'host:port' of each worker's TensorFlow server; the workers must
      be able to reach each other by them.

  Returns:
    The Cluster, with a device of each worker.
  """
  _KeepSums()
  if tf.config.get_visible_devices('GPU'):
    tf.config.set_visible_devices([], 'GPU')
  tf.config.experimental_connect_to_cluster(
    tf.train.ClusterSpec({placement.WORKER_JOB: list(addresses)}),
    job_name=placement.CLIENT_JOB,
    protocol='grpc',
  )
  return Workers(len(addresses))


def ReturnToClient(step: Callable[..., Any]) -> Callable[..., Any]:
  """Lets a function of workers bring its results to this process.

  They then come while the function runs. Reading them from the workers
  afterwards takes half a millisecond for each number.

  Args:
    step: to be made a tf.function.

  Returns:
    The function to make a tf.function of; without workers, it does the same.
  """

  @functools.wraps(step)
  def _Step(*args):
    outputs = step(*args)
    clients = [
      device.name
      for device in tf.config.list_logical_devices('CPU')
      if tf.DeviceSpec.from_string(device.name).job == placement.CLIENT_JOB
    ]
    if not clients:
      return outputs
    with tf.device(clients[0]):
      return tf.nest.map_structure(tf.identity, outputs)

  return _Step


def Planned(kind: str, num_partitions: int) -> Cluster:
  """The devices' names, whether or not this machine has them.

  Args:
    kind: 'cpu', 'gpu' or 'tpu'.
    num_partitions: K.

  Returns:
    The Cluster, good for planning only.
  """
  devices = [f'/device:{kind.upper()}:{k}' for k in range(num_partitions)]
  return Cluster(kind, tuple(devices))


def _KeepSums() -> None:
  """Switches off what would change bits with the number of partitions.

  That rewrite regroups sums and products, differently in different graphs. The
  setting goes to workers with each function that this process runs there.
  """
  tf.config.optimizer.set_experimental_options(
    {'arithmetic_optimization': False}
  )


def _InitializeTpus() -> None:
  try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver('local')
    tf.tpu.experimental.initialize_tpu_system(resolver)
  except (ValueError, RuntimeError, tf.errors.OpError) as e:
    raise ValueError(
      '--run_locally=tpu: TensorFlow finds no TPU on this machine '
      f'({str(e).splitlines()[0]}); run on a TPU host, or use '
      '--run_locally=cpu'
    ) from e
