"""The devices of this run: those of this machine, one for each partition."""

from __future__ import annotations

import dataclasses

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
  # This rewrite regroups sums and products, differently in the graphs of
  # different numbers of partitions. Without it all of them give the same bits.
  tf.config.optimizer.set_experimental_options(
    {'arithmetic_optimization': False}
  )
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
