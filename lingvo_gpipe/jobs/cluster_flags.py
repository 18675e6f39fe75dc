"""The flags of clusters: workers, what happens when one is lost, TPUs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from absl import flags

from lingvo_gpipe import user_error

LISTEN = ('local', 'network')
RESOLVERS = ('', 'tf_config', 'slurm', 'kubernetes')

_WORKER_HOSTS = flags.DEFINE_list(
  'worker_hosts',
  [],
  'The workers of a cluster, host:port each: the trainer runs the partitions '
  'on them, a process of --job=worker is one of them. In the same order for '
  'all. Default: what TF_CONFIG says, or none.',
)
_WORKER_TASK = flags.DEFINE_integer(
  'worker_task',
  -1,
  'Which of --worker_hosts a process of --job=worker is, from 0. -1: what '
  'TF_CONFIG or --cluster_resolver says, or 0 where there is one only.',
  lower_bound=-1,
)
_CLUSTER_RESOLVER = flags.DEFINE_enum(
  'cluster_resolver',
  '',
  RESOLVERS,
  'Who knows the workers in place of --worker_hosts. tf_config: the '
  'environment variable TF_CONFIG (also the default where it is set). slurm: '
  'in a job step of n + 1 tasks, the first is the trainer and the others its '
  'workers. '
  'kubernetes: the pods with the label --worker_label.',
)
_WORKER_LABEL = flags.DEFINE_string(
  'worker_label',
  'job-name=lingvo-gpipe-worker',
  'Label of the pods of workers, with --cluster_resolver=kubernetes.',
)
_WORKER_PORT = flags.DEFINE_integer(
  'worker_port',
  8470,
  'Port of workers that --cluster_resolver=slurm or kubernetes finds; several '
  'on one host have the ones that follow.',
  lower_bound=1,
  upper_bound=65535,
)
_WORKER_GPUS = flags.DEFINE_integer(
  'worker_gpus',
  0,
  'How many GPUs each of --worker_hosts has for this run, a partition on each. '
  '0: each worker is a device, its processor.',
  lower_bound=0,
)
_WORKER_THREADS = flags.DEFINE_integer(
  'worker_threads',
  0,
  'Threads that compute in a process of --job=worker. 0: as many as cores. '
  'With 1, results are those of --local_workers to the last bit.',
  lower_bound=0,
)
_WORKER_LISTEN = flags.DEFINE_enum(
  'worker_listen',
  'local',
  LISTEN,
  'Who can connect to a process of --job=worker, and run what they like there: '
  'local: programs of this machine; network: everybody who can reach its port.',
)
_TRAINER_ADDRESS = flags.DEFINE_string(
  'trainer_address',
  '',
  'host or host:port where --worker_hosts reach the trainer. Empty: the '
  'address that this machine has in their network, and any free port.',
)
_WORKER_WAIT = flags.DEFINE_float(
  'worker_wait',
  300.0,
  'Seconds that the trainer waits for --worker_hosts that are not there, at '
  'the start and after one was lost.',
  lower_bound=0.0,
)
_WORKER_LOST_SECONDS = flags.DEFINE_float(
  'worker_lost_seconds',
  15.0,
  'A worker that has not answered for so long is lost. One whose process has '
  'ended is noticed at once.',
  lower_bound=1.0,
)
_WORKER_RESTARTS = flags.DEFINE_integer(
  'worker_restarts',
  10,
  'How often in a row, without a new checkpoint in between, a job goes on '
  'after a worker was lost: it waits for the worker and starts again from the '
  'last checkpoint. 0: the loss of a worker ends it.',
  lower_bound=0,
)


_TPU = flags.DEFINE_string(
  'tpu',
  None,
  'Run on the cores of this TPU, a partition on each, host after host: the '
  'name of a Cloud TPU, grpc://host:port, or "local" for that of this machine. '
  'Empty: what the environment variables of a cloud machine say. Implies '
  '--run_locally=tpu. --worker_wait is how long to wait for its hosts.',
)


@dataclasses.dataclass(frozen=True)
class ClusterOptions:
  """The flags of clusters; see their help texts.

  Attributes:
    hosts: 'host:port' of each worker.
    task: index of this process among them; None: it is none, or not said.
    resolver: one of RESOLVERS.
    label: of pods.
    port: of the first worker of a host.
    gpus: of each worker.
    threads: of a worker; 0: as many as cores.
    listen: one of LISTEN.
    trainer_address: '' for any.
    wait: seconds.
    lost_seconds: seconds.
    restarts: how many in a row.
    tpu: name of a TPU, see cluster_resolvers.Tpu; None: no such one.
  """

  hosts: tuple[str, ...] = ()
  task: int | None = None
  resolver: str = ''
  label: str = 'job-name=lingvo-gpipe-worker'
  port: int = 8470
  gpus: int = 0
  threads: int = 0
  listen: str = 'local'
  trainer_address: str = ''
  wait: float = 300.0
  lost_seconds: float = 15.0
  restarts: int = 10
  tpu: str | None = None

  @property
  def is_given(self) -> bool:
    """Whether there are workers, known already or not."""
    return bool(self.hosts or self.resolver)

  @property
  def num_devices(self) -> int:
    """How many devices the workers have together."""
    return len(self.hosts) * max(1, self.gpus)

  def Check(self, job: str) -> None:
    """Raises UserError for flags that do not go together.

    Args:
      job: of the process.
    """
    CheckHosts(self.hosts, '--worker_hosts')
    if job == 'worker' and not self.is_given:
      raise user_error.UserError(
        '--job=worker needs --worker_hosts, such as '
        '--worker_hosts=localhost:2222,localhost:2223 --worker_task=0, or '
        'TF_CONFIG or --cluster_resolver'
      )
    if job == 'worker' and self.hosts and self.task is None:
      raise user_error.UserError(
        f'--worker_task is missing: which of the {len(self.hosts)} workers '
        f'{", ".join(self.hosts)} is this one, 0 to {len(self.hosts) - 1}?'
      )
    if self.gpus and not self.is_given:
      raise user_error.UserError(
        f'--worker_gpus={self.gpus} are those of --worker_hosts, which is not '
        'set; for the GPUs of this machine use --run_locally=gpu'
      )

  def CheckTpu(self, job: str, run_locally: str, local_workers: int) -> None:
    """Raises UserError for flags that do not go together with --tpu.

    Args:
      job: of the process.
      run_locally: of the flag.
      local_workers: of the flag.
    """
    if self.tpu is None:
      return
    flag = f'--tpu={self.tpu}'
    if job == 'worker':
      raise user_error.UserError(
        f"{flag} is a flag of the trainer: a TPU's hosts have a server already "
        'and need no --job=worker'
      )
    if run_locally != 'tpu':
      raise user_error.UserError(
        f'{flag} and --run_locally={run_locally} are different devices; leave '
        'out one of them'
      )
    for other, is_set in (
      (f'--local_workers={local_workers}', local_workers),
      ('--worker_hosts', self.hosts),
      (f'--cluster_resolver={self.resolver}', self.resolver),
      (f'--worker_gpus={self.gpus}', self.gpus),
    ):
      if is_set:
        raise user_error.UserError(
          f'{flag} and {other} say both what partitions run on; leave out one '
          'of them'
        )


def CheckHosts(hosts: tuple[str, ...], source: str) -> None:
  """Raises UserError for addresses that are no 'host:port', or come twice."""
  for address in hosts:
    host, _, port = address.rpartition(':')
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
      raise user_error.UserError(
        f'{source}: {address!r} is no address; write host:port, such as '
        'localhost:2222'
      )
    if hosts.count(address) > 1:
      raise user_error.UserError(
        f'{source}: {address} comes twice; each worker is a process with a '
        'port of its own'
      )


# What a task of TF_CONFIG does where --job is not given.
_JOBS = {
  'chief': 'trainer',
  'master': 'trainer',
  'trainer': 'trainer',
  'worker': 'worker',
  'evaluator': 'evaler',
}


def ReadTfConfig(text: str) -> tuple[tuple[str, ...], str, int | None]:
  """What TF_CONFIG says.

  Args:
    text: JSON, {"cluster": {"worker": ["host:port", ...]}, "task": {"type":
      "worker" or "chief", "index": 0}}; '' where it is not set.

  Returns:
    (addresses of workers, the job of this process or '', its index among the
    workers or None).

  Raises:
    UserError: where it says something else.
  """
  if not text:
    return (), '', None
  try:
    config = json.loads(text)
    cluster, task = config.get('cluster', {}), config.get('task', {})
    hosts = tuple(map(str, cluster.get('worker', ())))
    kind, index = task.get('type', ''), int(task.get('index', 0))
  except (ValueError, TypeError, AttributeError) as e:
    raise user_error.UserError(
      f'the environment variable TF_CONFIG cannot be read ({e}); write '
      '{"cluster": {"worker": ["host:port"]}, "task": {"type": "worker", '
      '"index": 0}}, or unset it'
    ) from e
  if not hosts:
    return (), '', None
  CheckHosts(hosts, 'TF_CONFIG')
  if kind and kind not in _JOBS:
    raise user_error.UserError(
      f'TF_CONFIG: a task of type {kind!r} is none of {", ".join(_JOBS)}'
    )
  job = _JOBS.get(kind, '')
  return hosts, job, index if job == 'worker' else None


def FromFlags(
  local_workers: int, environ: Mapping[str, Any] = os.environ
) -> tuple[ClusterOptions, str]:
  """The parsed flags, not checked.

  Args:
    local_workers: of the flag; they, and TPUs, come before TF_CONFIG.
    environ: variables of the environment.

  Returns:
    (the options, the job that TF_CONFIG gives this process or '').

  Raises:
    UserError: where TF_CONFIG cannot be read.
  """
  hosts, job, task = tuple(_WORKER_HOSTS.value), '', None
  resolver = _CLUSTER_RESOLVER.value
  others = bool(hosts or local_workers or _TPU.value is not None)
  if not others and resolver in ('', 'tf_config'):
    hosts, job, task = ReadTfConfig(environ.get('TF_CONFIG', ''))
    if resolver and not hosts:
      raise user_error.UserError(
        '--cluster_resolver=tf_config: the environment variable TF_CONFIG is '
        'not set, or names no workers'
      )
    resolver = ''
  if _WORKER_TASK.value >= 0:
    task = _WORKER_TASK.value
  elif task is None and len(hosts) == 1:
    task = 0
  options = ClusterOptions(
    hosts=hosts,
    task=task,
    resolver=resolver,
    label=_WORKER_LABEL.value,
    port=_WORKER_PORT.value,
    gpus=_WORKER_GPUS.value,
    threads=_WORKER_THREADS.value,
    listen=_WORKER_LISTEN.value,
    trainer_address=_TRAINER_ADDRESS.value,
    wait=_WORKER_WAIT.value,
    lost_seconds=_WORKER_LOST_SECONDS.value,
    restarts=_WORKER_RESTARTS.value,
    tpu=_TPU.value,
  )
  return options, job
