"""Worker processes on this machine, a core for each: real parallelism.

  with local_workers.LocalWorkers(2) as workers:     # starts them, no waiting
    devices = cluster.Connect(workers.addresses).devices
    with tf.device(devices[1]):
      ...                                            # runs in worker 1
    print(workers.MemoryUsage())

Each worker is a process with TensorFlow's server (tf.distribute.Server), which
does what a connected process (the client) places on its devices. Logical
devices of one process share its threads; workers share nothing but the machine.
A worker that ends unasked ends what the client was doing there, and leaving the
`with` block then raises WorkerLostError, which says what happened.

TensorFlow's servers do not ask who connects: everybody who has an account on
the machine can. Other machines cannot (loopback.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from absl import logging

from lingvo_gpipe import child_process
from lingvo_gpipe.workers import (
  process_memory,
  worker_lost,
  worker_process,
  worker_watch,
)

# Importing TensorFlow from a slow disk can take more than a minute.
_START_SECONDS = 300.0
# A process is reported to have ended a little later than its connections end.
_REPORT_SECONDS = 2.0
_END_SECONDS = 10.0
_LOG_LINES = 3
_MAX_LOG_LINE = 200


WorkerLostError = worker_lost.WorkerLostError


class _Log:
  """A file that a process adds lines to, behind those of earlier runs."""

  def __init__(self, path: str):
    self.path = path
    self._start = os.path.getsize(path) if os.path.exists(path) else 0

  def Lines(self) -> list[str]:
    """The last lines of this run."""
    if not os.path.exists(self.path):  # The process did not come that far.
      return []
    with open(self.path, encoding='utf-8', errors='replace') as f:
      f.seek(self._start)
      lines = [line.strip()[:_MAX_LOG_LINE] for line in f if line.strip()]
    return lines[-_LOG_LINES:]


@dataclasses.dataclass
class _Worker:
  """What is known of a worker.

  Attributes:
    core: number of the processor core that it runs on.
    log: what it prints.
    pid: of its process; None before it is ready.
    address: 'host:port'; '' before it is ready.
    status: the exit status after it has ended, negative for a signal.
  """

  core: int
  log: _Log
  pid: int | None = None
  address: str = ''
  status: int | None = None


class LocalWorkers:
  """A context manager: workers run from the start of its block to the end.

  Should the process that made it die, its workers end within about a second.
  """

  def __init__(
    self,
    num_workers: int,
    *,
    memory_limit: int | None = None,
    log_dir: str | None = None,
    lost_seconds: float = 15.0,
    on_stuck: Callable[[str], None] | None = None,
  ):
    """Starts nothing yet.

    Args:
      num_workers: how many.
      memory_limit: bytes of resident memory that each may have, 0.4 GiB of
        which it needs without doing anything. A worker that takes more is ended
        within some hundredths of a second, and WorkerLostError says so.
      log_dir: where worker_0.log etc. go, and start.log with what goes wrong
        before there are workers; all added to what is there. None: a temporary
        directory, removed at the end of the block.
      lost_seconds: see WorkerWatch.
      on_stuck: see WorkerWatch; None: workers that stand still are waited for.

    Raises:
      ValueError: for numbers that are not positive.
    """
    if num_workers < 1:
      raise ValueError(f'num_workers={num_workers} must be 1 or more')
    if memory_limit is not None and memory_limit <= 0:
      raise ValueError(f'memory_limit={memory_limit} must be None or positive')
    self._num_workers = num_workers
    self._memory_limit = memory_limit
    self._log_dir = log_dir
    self._lost_seconds = lost_seconds
    self._on_stuck = on_stuck
    self._watch: worker_watch.WorkerWatch | None = None
    self._temporary: tempfile.TemporaryDirectory | None = None
    self._workers: list[_Worker] = []
    self._starter: subprocess.Popen | None = None
    self._starter_log: _Log | None = None
    self._unread = b''

  # Starting.

  def __enter__(self) -> LocalWorkers:
    log_dir = self._log_dir
    if log_dir is None:
      self._temporary = tempfile.TemporaryDirectory(prefix='workers_')
      log_dir = self._temporary.name
    os.makedirs(log_dir, exist_ok=True)
    self._workers = [
      _Worker(core, _Log(worker_process.LogPath(log_dir, k)))
      for k, core in enumerate(_Cores(self._num_workers))
    ]
    self._starter_log = _Log(os.path.join(log_dir, 'start.log'))
    self._starter = self._Start(log_dir)
    return self

  def _Start(self, log_dir: str) -> subprocess.Popen:
    args = [
      f'--cores={",".join(str(w.core) for w in self._workers)}',
      f'--log_dir={log_dir}',
      f'--parent={os.getpid()}',
    ]
    if self._memory_limit:
      args.append(f'--memory_limit={self._memory_limit}')
    env = child_process.Environment()
    # One arena of memory for all threads of a worker, of which one computes:
    # several keep up to 140 MiB more from each other. Who sets it decides.
    env.setdefault('MALLOC_ARENA_MAX', '1')
    # Where TensorFlow computes with oneDNN, it would keep what is freed.
    env.setdefault('TF_ONEDNN_USE_SYSTEM_ALLOCATOR', '1')
    # Workers compute on processors, and say in their logs what goes wrong.
    env |= {'CUDA_VISIBLE_DEVICES': '-1', 'TF_CPP_MIN_LOG_LEVEL': '1'}
    with open(self._starter_log.path, 'ab') as log:
      return subprocess.Popen(
        [sys.executable, '-P', '-m', worker_process.__name__, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=env,
        # Ctrl-C in a terminal is for this process to handle.
        start_new_session=True,
      )

  @property
  def addresses(self) -> tuple[str, ...]:
    """'host:port' of each worker; waits until all are ready.

    Raises:
      WorkerLostError: where one has ended.
    """
    self._AwaitReady()
    return tuple(w.address for w in self._workers)

  def _AwaitReady(self) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not all(w.address for w in self._workers):
      reported = self._Read(deadline - time.monotonic())
      self.Check()
      if not reported:
        raise WorkerLostError(
          f'workers are not ready after {_START_SECONDS:.0f} s; '
          f'{self._LogEnd(self._starter_log)}'
        )
    if self._on_stuck is not None and self._watch is None:
      self._watch = worker_watch.WorkerWatch(
        [w.address for w in self._workers],
        lost_seconds=self._lost_seconds,
        on_stuck=self._on_stuck,
      )
      self._watch.Start()

  def Describe(self) -> list[str]:
    """A line about each worker; waits until all are ready."""
    self._AwaitReady()
    return [
      f'worker {k} at {w.address}, process {w.pid}, core {w.core}'
      for k, w in enumerate(self._workers)
    ]

  # Watching.

  def Check(self, seconds: float = 0.0) -> None:
    """Looks whether all workers are there.

    Args:
      seconds: how long to wait for the report that one has ended.

    Raises:
      WorkerLostError: where one has.
    """
    deadline = time.monotonic() + seconds
    reported = True
    while reported:
      for k, worker in enumerate(self._workers):
        if worker.status is not None:
          raise WorkerLostError(
            self._Obituary(k),
            comes_back=worker.status != worker_process.OUT_OF_MEMORY_STATUS,
          )
      reported = self._Read(deadline - time.monotonic())
    if self._starter.poll() is not None:
      raise WorkerLostError(
        f'the program that started the workers (process {self._starter.pid}) '
        f'has ended with status {self._starter.returncode}, and they with it; '
        f'{self._LogEnd(self._starter_log)}'
      )

  def _Read(self, seconds: float) -> bool:
    """Reads what the starter reports.

    Args:
      seconds: to wait for it at the most.

    Returns:
      Whether something came; False also after the starter's end.
    """
    pipe = self._starter.stdout.fileno()
    readable, _, _ = select.select([pipe], [], [], max(0.0, seconds))
    data = os.read(pipe, 4096) if readable else b''
    if readable and not data:  # Its end.
      self._starter.wait()
    *lines, self._unread = (self._unread + data).split(b'\n')
    for line in lines:
      what, *numbers = line.decode().split()
      k, pid, value = map(int, numbers)
      worker = self._workers[k]
      worker.pid = pid
      if what == 'ready':
        worker.address = f'127.0.0.1:{value}'
      else:
        worker.status = os.waitstatus_to_exitcode(value)
    return bool(data)

  def _Obituary(self, k: int) -> str:
    """What became of worker k."""
    worker = self._workers[k]
    name = f'worker {k} ({worker.address or "starting"}, process {worker.pid})'
    if worker.status == worker_process.OUT_OF_MEMORY_STATUS:
      reason = (
        'ran out of its memory limit of '
        f'{process_memory.FormatSize(self._memory_limit)} (--worker_memory): '
        'raise it, or use more workers or smaller micro-batches'
      )
    elif worker.status < 0:
      reason = f'was ended by {signal.Signals(-worker.status).name}'
      if worker.status == -signal.SIGKILL:
        reason += ', perhaps because the machine ran out of memory'
    else:
      reason = f'ended with status {worker.status}'
    return f'{name} {reason}; {self._LogEnd(worker.log)}'

  def _LogEnd(self, log: _Log) -> str:
    """Where a log is, unless it is to be removed, and its last lines."""
    name = 'its log' if self._temporary else f'its log {log.path}'
    lines = log.Lines()
    if not lines:
      return f'{name} is empty'
    return f'{name} ends with: {" | ".join(lines)}'

  # Measuring.

  @property
  def pids(self) -> tuple[int, ...]:
    """The process of each worker; waits until all are ready."""
    self._AwaitReady()
    return tuple(w.pid for w in self._workers)

  @property
  def cores(self) -> tuple[int, ...]:
    """Number of the core of each worker."""
    return tuple(w.core for w in self._workers)

  def MemoryUsage(self) -> list[process_memory.Usage]:
    """Resident memory of each worker, now and at its peak."""
    return [process_memory.Read(pid) for pid in self.pids]

  def ResetPeakMemory(self) -> None:
    """Lets the peaks begin anew, for measuring what comes next."""
    for pid in self.pids:
      process_memory.ResetPeak(pid)

  # Ending.

  def __exit__(self, unused_type: Any, error: Any, unused_trace: Any) -> None:
    try:
      if worker_lost.IsOfRuntime(error):
        self._Explain(error)
    finally:
      if self._watch is not None:
        self._watch.Stop()
      self._End()

  def _Explain(self, error: BaseException) -> None:
    """Raises WorkerLostError where the loss of a worker is behind an error."""
    try:
      self.Check(_REPORT_SECONDS)
    except WorkerLostError as e:
      raise e from error

  def Kill(self) -> None:
    """Ends the workers' processes, whatever they are doing; from any thread."""
    for worker in self._workers:
      if worker.pid is not None and worker.status is None:
        # Not a child of ours; it may have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
          os.kill(worker.pid, signal.SIGKILL)

  def _End(self) -> None:
    """Ends all processes, and waits for it."""
    starter = self._starter
    try:
      self._Read(0.0)
      starter.stdin.close()
      self.Kill()
      # It waits for its children, then ends.
      with contextlib.suppress(subprocess.TimeoutExpired):
        starter.wait(_END_SECONDS)
    finally:
      starter.kill()
      starter.wait()
      starter.stdout.close()
      if self._temporary:
        self._temporary.cleanup()


def _Cores(num_workers: int) -> list[int]:
  """A core for each worker, of those that this process may use."""
  cores = sorted(os.sched_getaffinity(0))
  if num_workers > len(cores):
    logging.warning(
      '%d workers share %d cores: they are not faster than %d workers',
      num_workers,
      len(cores),
      len(cores),
    )
  return [cores[k % len(cores)] for k in range(num_workers)]
