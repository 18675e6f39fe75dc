"""One worker of a cluster: what --job=worker runs.

  worker_server.Serve          imports TensorFlow once
    `- its server, a fork      does what a trainer places on its devices

The server may die, of a lack of memory or a kernel's fault. Its parent then
forks another one at the same address, which takes no time, and the trainer
finds it there when it goes on from its last checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from lingvo_gpipe import quiet_import, user_error
from lingvo_gpipe.workers import loopback, worker_process

# A server that ends sooner counts as one that could not start.
_SHORT_LIFE = 5.0
_MAX_SHORT_LIVES = 5
_MAX_DELAY = 10.0


class WorkerServer:
  """Serves as one worker until it is told to end.

  Args:
    addresses: 'host:port' of all workers.
    task: which of them this one is.
    listen: 'local': other machines cannot connect; 'network': they can.
    threads: that compute; 0: as many as there are cores.
    num_gpus: of this machine's that it has.
    memory_limit: bytes of resident memory that the server may have; None: no
      limit.
    show: takes lines for the user.

  Raises:
    UserError: for a task that is not there, an address that contradicts
      `listen`, or a port that is taken.
  """

  def __init__(
    self,
    addresses: Sequence[str],
    task: int,
    *,
    listen: str = 'local',
    threads: int = 0,
    num_gpus: int = 0,
    memory_limit: int | None = None,
    show: Callable[[str], Any] = print,
  ):
    if not 0 <= task < len(addresses):
      raise user_error.UserError(
        f'--worker_task={task} is none of the {len(addresses)} workers '
        f'{", ".join(addresses)} (--worker_hosts); give 0 to '
        f'{len(addresses) - 1}'
      )
    self._address = addresses[task]
    self._task = task
    self._listen = listen
    self._threads = threads
    self._num_gpus = num_gpus
    self._memory_limit = memory_limit
    self._show = show
    self._name = f'worker {task} of {len(addresses)}'
    self._stop: signal.Signals | None = None
    self._server: int | None = None
    self._CheckAddress()

  def _CheckAddress(self) -> None:
    host, _, port = self._address.rpartition(':')
    if self._listen == 'local' and not loopback.IsLoopback(host):
      raise user_error.UserError(
        f'{self._name} is {self._address}, an address for other machines to '
        'connect to, which --worker_listen=local does not let them. '
        '--worker_listen=network does; anybody who reaches the port may then '
        'run programs here, so use it in a private network only'
      )
    try:
      with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(('', int(port)))
    except OSError as e:
      raise user_error.UserError(
        f'{self._name} cannot listen at {self._address}: {e.strerror}; end '
        'what uses the port, or change it in --worker_hosts of all processes'
      ) from e

  def Run(self) -> int:
    """Serves until SIGTERM or SIGINT.

    Returns:
      The exit status.

    Raises:
      TrainingError: where no server can be kept running.
    """
    if not self._num_gpus:
      os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
    # Forks have it, too; nothing uses it here.
    quiet_import.ImportTensorFlow(quiet=not self._num_gpus)
    handlers = {
      number: signal.signal(number, self._Stop)
      for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
      return self._Run()
    finally:
      for number, handler in handlers.items():
        signal.signal(number, handler)

  def _Run(self) -> int:
    short_lives = 0
    while True:
      started = time.monotonic()
      status = self._RunServer()
      if self._stop is not None:
        self._show(f'{self._name} stopped by {self._stop.name}')
        return 128 + self._stop
      short = time.monotonic() - started < _SHORT_LIFE
      short_lives = short_lives + 1 if short else 0
      text = f'{self._name}: its server {_Obituary(status)}'
      if short_lives >= _MAX_SHORT_LIVES:
        raise user_error.TrainingError(
          f'{text}; it has ended {short_lives} times within {_SHORT_LIFE:.0f} '
          's of its start, the reason may stand above'
        )
      logging.warning('%s; another one starts', text)
      self._Wait(min(0.5 * 2**short_lives, _MAX_DELAY) if short else 0.0)

  def _RunServer(self) -> int:
    """Forks a server and waits for its end; returns its wait status."""
    reader, writer = os.pipe()
    own_pid = os.getpid()
    pid = os.fork()
    if not pid:
      try:
        self._BeServer(reader, writer, own_pid)
      except BaseException:  # noqa: BLE001
        logging.exception('%s: its server cannot start', self._name)
      finally:
        os._exit(1)  # Nothing of the parent's is a server's business.
    self._server = pid
    os.close(reader)
    try:
      if self._stop is not None:  # It came while there was no server.
        os.kill(pid, signal.SIGKILL)
      return os.waitpid(pid, 0)[1]
    finally:
      self._server = None
      os.close(writer)

  def _BeServer(self, reader: int, writer: int, parent: int) -> None:
    """Serves until the parent's end; does not return."""
    for number in (signal.SIGTERM, signal.SIGINT):
      signal.signal(number, signal.SIG_IGN)  # The parent ends it.
    os.close(writer)
    os.dup2(reader, 0)
    worker_process.StartServer(
      self._task,
      self._address,
      threads=self._threads,
      num_gpus=self._num_gpus,
      listen=self._listen,
    )
    reach = {
      'local': 'this machine only',
      'network': 'open to everybody who can reach this port',
    }
    self._show(
      f'{self._name} listens at {self._address} ({reach[self._listen]}), '
      f'process {os.getpid()}'
    )
    worker_process.Watch(parent, self._memory_limit)

  def _Stop(self, number: int, unused_frame: Any) -> None:
    self._stop = signal.Signals(number)
    if self._server is not None:
      with contextlib.suppress(ProcessLookupError):
        os.kill(self._server, signal.SIGKILL)

  def _Wait(self, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while self._stop is None and time.monotonic() < deadline:
      time.sleep(0.05)


def _Obituary(status: int) -> str:
  code = os.waitstatus_to_exitcode(status)
  if code == worker_process.OUT_OF_MEMORY_STATUS:
    return 'took more than its --worker_memory'
  if code >= 0:
    return f'ended with status {code}'
  text = f'was ended by {signal.Signals(-code).name}'
  if code == -signal.SIGKILL:
    text += ', perhaps because the machine ran out of memory'
  return text
