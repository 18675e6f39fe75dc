"""The program that becomes the worker processes of local_workers.py.

  local_workers.LocalWorkers           the user's process
    `- worker_process                  imports TensorFlow once, then forks
         |- worker 0                   a TensorFlow server, on a core of its own
         `- worker 1

Importing TensorFlow takes seconds of a core, so it is done once for all
workers; a process in which nothing has used TensorFlow yet may be forked. What
the program has to tell goes to its standard output, a line each:

  ready <worker> <pid> <port>
  ended <worker> <pid> <wait status>

Everything else that workers print goes to their logs. Nothing outlives the
user's process: its end closes the standard input of all. Signals that are sent
to a whole group of processes, like Ctrl-C, are left to the user's process.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence

from lingvo_gpipe import log_lines
from lingvo_gpipe.workers import loopback, process_memory

# Exit status of a worker that took more memory than it may.
OUT_OF_MEMORY_STATUS = 86

# How often a process looks after its parent and its memory, in seconds.
_PARENT_INTERVAL = 0.5
_MEMORY_INTERVAL = 0.02


def LogPath(log_dir: str, worker: int) -> str:
  """Where a worker's log is."""
  return os.path.join(log_dir, f'worker_{worker}.log')


def _Parse(argv: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description='Started by local_workers.py.')
  parser.add_argument('--cores', required=True, help='Of each worker, 0,1,...')
  parser.add_argument('--log_dir', required=True, help="Of the workers' logs.")
  parser.add_argument('--memory_limit', type=int, help='Bytes, of each worker.')
  parser.add_argument('--parent', type=int, required=True, help='Its pid.')
  return parser.parse_args(argv)


def _IsOrphan(parent: int, seconds: float) -> bool:
  """Waits for `seconds`, or less where the user's process ends."""
  # Nothing is ever written there: it is readable only at its end. A process
  # that has inherited the other end may keep it open, hence the second test.
  readable, _, _ = select.select([0], [], [], seconds)
  return bool(readable) or os.getppid() != parent


class _EndWithParent:
  """A context in which the process ends soon after its parent has.

  By a timer, not a thread: a process with threads should not be forked.
  """

  def __init__(self, parent: int):
    self._parent = parent

  def __enter__(self) -> None:
    signal.signal(signal.SIGALRM, self._Check)
    signal.setitimer(signal.ITIMER_REAL, _PARENT_INTERVAL, _PARENT_INTERVAL)

  def __exit__(self, *unused_exc) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)

  def _Check(self, *unused_args) -> None:
    if _IsOrphan(self._parent, 0):
      os._exit(0)


def _RunWorker(
  worker: int, core: int, log_dir: str, memory_limit: int | None, parent: int
) -> None:
  """Serves until the parent ends; does not return."""
  report = os.dup(1)
  log = os.open(
    LogPath(log_dir, worker), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
  )
  os.dup2(log, 1)
  os.dup2(log, 2)
  os.sched_setaffinity(0, {core})
  # Port 0: any that is free. More threads would only compete for the core.
  port = StartServer(worker, 'localhost:0', threads=1)
  os.write(report, f'ready {worker} {os.getpid()} {port}\n'.encode())
  os.close(report)
  Watch(parent, memory_limit)


def StartServer(
  worker: int,
  address: str,
  *,
  threads: int,
  num_gpus: int = 0,
  listen: str = 'local',
) -> int:
  """Starts TensorFlow's server, which runs until the process ends.

  Args:
    worker: its number among the workers.
    address: 'host:port', or port 0 for any that is free. The addresses of the
      others come with each connection.
    threads: that compute; 0: as many as there are cores.
    num_gpus: of this machine's that it may use.
    listen: 'local' for connections from this machine only, or 'network'.

  Returns:
    The port.
  """
  import tensorflow as tf

  config = tf.compat.v1.ConfigProto(
    intra_op_parallelism_threads=threads,
    inter_op_parallelism_threads=threads,
    device_count={'GPU': num_gpus},
  )
  server = tf.distribute.Server(
    tf.train.ClusterSpec({'worker': {worker: address}}),
    job_name='worker',
    task_index=worker,
    config=config,
  )
  port = int(server.target.rpartition(':')[2])
  if listen == 'local' and not loopback.Restrict(port):
    log_lines.Show(
      f'warning: port {port} can be reached from other machines: this system '
      'does not let a process bind it to the loopback interface (Linux 5.7 '
      'does)',
      sys.stderr,
    )
  return port


def Watch(parent: int, memory_limit: int | None) -> None:
  """Ends the process with its parent, or when it takes too much memory.

  Its standard input must be a pipe that the parent keeps open. TensorFlow's
  threads go on meanwhile. Looking at the peak of the resident memory finds also
  what was given back before the next look. A limit set by RLIMIT_DATA or
  RLIMIT_AS would count the unused stacks of TensorFlow's threads (some 0.8
  GiB), and would be met by one of a dozen errors.
  """
  interval = _MEMORY_INTERVAL if memory_limit else _PARENT_INTERVAL
  while not _IsOrphan(parent, interval):
    if memory_limit:
      peak = process_memory.Read(os.getpid()).peak
      if peak > memory_limit:
        text = process_memory.FormatSize
        log_lines.Show(
          f'out of memory: {text(peak)} resident, {text(memory_limit)} allowed',
          sys.stderr,
        )
        os._exit(OUT_OF_MEMORY_STATUS)
  os._exit(0)


def Main(argv: Sequence[str]) -> None:
  """Starts the workers and reports what becomes of them.

  Args:
    argv: the arguments, without the program's name.
  """
  args = _Parse(argv)
  # Children inherit this. They are ended by SIGKILL or the end of the parent.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
  with _EndWithParent(args.parent):
    import tensorflow  # noqa: F401
  if _IsOrphan(args.parent, 0):
    return
  own_pid = os.getpid()
  workers = {}
  for worker, core in enumerate(args.cores.split(',')):
    pid = os.fork()
    if not pid:
      try:
        _RunWorker(worker, int(core), args.log_dir, args.memory_limit, own_pid)
      finally:
        # Nothing of the parent's clean-up is a worker's business.
        os._exit(1)
    workers[pid] = worker
  while workers:
    pid, status = os.wait()
    print(f'ended {workers.pop(pid)} {pid} {status}', flush=True)
  os._exit(0)  # Taking TensorFlow down in order would take a second.


if __name__ == '__main__':
  Main(sys.argv[1:])
