"""The devices of this run: this machine's, connected workers', or TPUs'."""

from __future__ import annotations

import dataclasses
import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe.gpipe import device_names, placement
from lingvo_gpipe.workers import (
  client_address,
  cluster_resolvers,
  server_wait,
  worker_probe,
)

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


def Local(kind: str, num_partitions: int, num_replicas: int = 1) -> Cluster:
  """Prepares this machine's devices; before anything else uses TensorFlow.

  'cpu' shows the processor as a logical device for each partition of each
  replica and leaves GPUs alone.

  Args:
    kind: 'cpu', 'gpu' or 'tpu'.
    num_partitions: K.
    num_replicas: R.

  Returns:
    The Cluster.

  Raises:
    ValueError: where the machine has no such device, or fewer than partitions.
  """
  _KeepSums()
  if kind == 'cpu':
    tf.config.set_visible_devices([], 'GPU')
    placement.ConfigureLogicalCpus(num_partitions * num_replicas)
  elif kind == 'tpu':
    _InitializeTpus(cluster_resolvers.Tpu('local'), '--run_locally=tpu')
  elif not tf.config.list_physical_devices('GPU'):
    raise ValueError(
      '--run_locally=gpu: TensorFlow finds no GPU on this machine; check '
      'nvidia-smi and that TensorFlow was installed with CUDA, or use '
      '--run_locally=cpu'
    )
  devices = placement.LocalDevices(
    num_partitions, run_locally=kind, num_replicas=num_replicas
  )
  return Cluster(kind, tuple(devices))


def Workers(num_workers: int, gpus: int = 0) -> Cluster:
  """The devices of workers, before anything is connected to them.

  Args:
    num_workers: how many.
    gpus: that each has for this run; 0: its processor is the device.

  Returns:
    The Cluster that Connect will give.
  """
  kind = 'gpu' if gpus else 'cpu'
  return Cluster(
    kind, tuple(device_names.WorkerDevices(num_workers, kind, max(1, gpus)))
  )


def Connect(
  addresses: Sequence[str], gpus: int = 0, client: str = ''
) -> Cluster:
  """Makes this process the client of workers.

  What it places on the cluster's devices then runs in the workers. Its own
  logical devices stay, under the job 'client'. A process is the client of one
  cluster at a time: after connecting to other workers, none of which may be
  among the first, variables and functions made before are lost.

  Args:
    addresses: 'host:port' of each worker's TensorFlow server; the workers must
      be able to reach each other by them.
    gpus: that each worker has.
    client: 'host' or 'host:port' by which workers reach this process. '': the
      address that it has in the network of the first one.

  Returns:
    The Cluster, with the devices of each worker.

  Raises:
    ValueError: for workers that lack a device.
  """
  _BecomeClient()
  client = client_address.Choose(addresses[0], client)
  tf.config.experimental_connect_to_cluster(
    tf.train.ClusterSpec(
      {
        device_names.WORKER_JOB: list(addresses),
        device_names.CLIENT_JOB: [client],
      }
    ),
    job_name=device_names.CLIENT_JOB,
    protocol='grpc',
  )
  client_address.Restrict(client)
  workers = Workers(len(addresses), gpus)
  _CheckDevices(workers, addresses)
  return workers


def Tpus(
  name: str,
  num_partitions: int,
  num_replicas: int = 1,
  *,
  client: str = '',
  wait_seconds: float = 300.0,
  show: Callable[[str], Any] = print,
) -> Cluster:
  """Connects to TPUs by their name, and takes a core for each partition.

  Other than workers, TPUs are not watched.

  Args:
    name: see cluster_resolvers.Tpu.
    num_partitions: K.
    num_replicas: R.
    client: see Connect.
    wait_seconds: how long to wait for hosts that do not answer.
    show: takes lines on what is being waited for.

  Returns:
    The Cluster, with cores in the order of the TPU's hosts.

  Raises:
    UserError: where the name is not known.
    ValueError: for hosts that do not answer, and too few cores.
  """
  flag = f'--tpu={name}'
  with server_wait.Telling(f'looking for {flag}', show):
    resolver = cluster_resolvers.Tpu(name)
  hosts = resolver.cluster_spec().as_dict().get(device_names.WORKER_JOB, [])
  if not hosts:  # This machine's.
    _KeepSums()
    with server_wait.Telling(f'initializing {flag}', show):
      _InitializeTpus(resolver, flag)
  else:
    missing = server_wait.Await(
      hosts,
      'TPU host',
      ask=worker_probe.WorkerProbe.CheckAlive,
      wait_seconds=wait_seconds,
      show=show,
    )
    if missing:
      raise ValueError(
        f'{flag}: {len(missing)} of {len(hosts)} hosts are not there after '
        f'{wait_seconds:.0f} s (--worker_wait): {", ".join(missing)}'
      )
    _BecomeClient()
    client = client_address.Choose(hosts[0], client)
    resolver = cluster_resolvers.Tpu(name, client)
    with server_wait.Telling(
      f'connecting to {flag} at {", ".join(hosts)}', show
    ):
      tf.config.experimental_connect_to_cluster(
        resolver,
        job_name=device_names.CLIENT_JOB,
        protocol='grpc',
        make_master_device_default=False,
      )
      client_address.Restrict(client)
      _InitializeTpus(resolver, flag)
  return Cluster(
    'tpu',
    tuple(
      placement.TpuDevices(
        num_partitions,
        num_replicas,
        [d.name for d in tf.config.list_logical_devices('TPU')],
        flag,
      )
    ),
  )


def _CheckDevices(workers: Cluster, addresses: Sequence[str]) -> None:
  """Raises ValueError where a connected worker lacks a device."""
  there = {d.name for d in tf.config.list_logical_devices()}
  missing = [d for d in workers.devices if d not in there]
  if not missing:
    return
  task = tf.DeviceSpec.from_string(missing[0]).task
  own = sorted(d for d in there if f'/task:{task}/' in d and 'job:worker' in d)
  raise ValueError(
    f'worker {task} at {addresses[task]} has no {missing[0]}, only '
    f'{", ".join(own)}; give its --job=worker as many --worker_gpus as the '
    'trainer, or the trainer fewer'
  )


def ClientDevice() -> str:
  """The processor of this process, as workers call it; '' without workers."""
  return placement.ClientDevice()


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
    client = ClientDevice()
    if not client:
      return outputs
    with tf.device(client):
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


def _BecomeClient() -> None:
  """What comes before connecting."""
  _KeepSums()
  # Functions of before that nobody holds any more, which are in cycles. One
  # that is deleted later is deleted on the workers, too, who do not have it:
  # an error of whatever is running then.
  gc.collect()
  if tf.config.get_visible_devices('GPU'):
    tf.config.set_visible_devices([], 'GPU')


def _InitializeTpus(
  resolver: tf.distribute.cluster_resolver.TPUClusterResolver, flag: str
) -> None:
  try:
    tf.tpu.experimental.initialize_tpu_system(resolver)
  except (ValueError, RuntimeError, tf.errors.OpError) as e:
    where, hint = (
      'on this machine',
      'run on a TPU host, or use --run_locally=cpu',
    )
    if resolver.cluster_spec().as_dict():
      where = 'at its hosts'
      hint = 'they must be TPU hosts with the TensorFlow of this process'
    raise ValueError(
      f'{flag}: TensorFlow finds no TPU {where} '
      f'({str(e).splitlines()[0]}); {hint}'
    ) from e
