"""Clusters that somebody else knows: Slurm, Kubernetes, TPUs with a name.

TensorFlow's own cluster resolvers do the work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import user_error
from lingvo_gpipe.gpipe import device_names


class Found(NamedTuple):
  """What a resolver says.

  Attributes:
    hosts: 'host:port' of each worker.
    job: of this process, 'trainer' or 'worker'; '' where it does not know.
    task: its index among the workers; None where it is none.
  """

  hosts: tuple[str, ...]
  job: str
  task: int | None


def Slurm(port: int, environ: Mapping[str, str] = os.environ) -> Found:
  """The tasks of a Slurm job step: the first trains, the others are workers.

  Args:
    port: of the first task of each host.
    environ: variables of the environment.

  Returns:
    What it found.

  Raises:
    UserError: outside of a job step, and for one with a single task.
  """
  count = environ.get('SLURM_STEP_NUM_TASKS', '')
  if not count.isdigit() or 'SLURM_PROCID' not in environ:
    raise user_error.UserError(
      '--cluster_resolver=slurm: this process is no task of a Slurm job step '
      '(SLURM_STEP_NUM_TASKS and SLURM_PROCID are not set); start it by srun'
    )
  if int(count) < 2:
    raise user_error.UserError(
      '--cluster_resolver=slurm: the job step has one task; it needs two at '
      'least, a trainer and a worker (srun --ntasks=N+1)'
    )
  try:
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
      jobs={'trainer': 1, 'worker': int(count) - 1},
      port_base=port,
      # It finds as many tasks on a node as it has GPUs for them, which are not
      # ours to hand out.
      gpus_per_node=int(count),
      gpus_per_task=1,
      auto_set_gpu=False,
    )
    spec = resolver.cluster_spec()
    job, task = resolver.get_task_info()
  except (RuntimeError, ValueError, KeyError) as e:
    raise user_error.UserError(f'--cluster_resolver=slurm: {e}') from e
  return Found(
    tuple(spec.job_tasks('worker')), job, task if job == 'worker' else None
  )


def Kubernetes(label: str, port: int, client: Any = None) -> Found:
  """The running pods with a label.

  Args:
    label: 'key=value'.
    port: that each listens on.
    client: of the Kubernetes API; None: that of the package `kubernetes`.

  Returns:
    What it found; workers in the order of their addresses.

  Raises:
    UserError: where the package is missing, or there are no such pods.
  """
  try:
    resolver = tf.distribute.cluster_resolver.KubernetesClusterResolver(
      job_to_label_mapping={'worker': [label]},
      tf_server_port=port,
      override_client=client,
    )
    hosts = sorted(resolver.cluster_spec().as_dict().get('worker', ()))
  except ImportError as e:
    raise user_error.UserError(
      '--cluster_resolver=kubernetes needs the package "kubernetes": pip '
      'install kubernetes'
    ) from e
  except Exception as e:
    # The package has errors of its own for all kinds of trouble.
    raise user_error.UserError(
      f'--cluster_resolver=kubernetes, pods with {label} (--worker_label): {e}'
    ) from e
  if not hosts:
    raise user_error.UserError(
      f'--cluster_resolver=kubernetes finds no running pod with {label} '
      '(--worker_label)'
    )
  return Found(tuple(hosts), '', None)


def Tpu(
  name: str, client: str | None = None
) -> tf.distribute.cluster_resolver.TPUClusterResolver:
  """The TPUs of a name.

  Args:
    name: of the Cloud TPU; 'grpc://host:port', or several with commas; 'local'
      for those of this machine; '' for what the environment variables of a
      cloud machine say (TPU_NAME and others).
    client: 'host:port' of this process in their cluster; None: it has no part
      in it.

  Returns:
    The resolver, which has found them.

  Raises:
    UserError: where there are none of that name.
  """
  part = (
    {'coordinator_name': device_names.CLIENT_JOB, 'coordinator_address': client}
    if client
    else {}
  )
  try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
      name, job_name=device_names.WORKER_JOB, **part
    )
    resolver.cluster_spec()  # Asks for the addresses.
  except Exception as e:
    # The cloud's packages have errors of their own for all kinds of trouble.
    raise user_error.UserError(
      f'--tpu={name}: no TPU of this name is found ({e}); give the name of a '
      'Cloud TPU in the zone of this machine, grpc://host:port, or "local" for '
      'the TPU of this machine'
    ) from e
  return resolver
