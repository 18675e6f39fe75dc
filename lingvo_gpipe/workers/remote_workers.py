"""The workers of a cluster: servers that somebody else has started.

  with remote_workers.RemoteWorkers(['10.0.0.1:2222', ...]) as workers:
    cluster.Connect(workers.addresses)        # waits until all are there
    ...

Each is a process of `trainer --job=worker` (worker_server.py). Leaving the
block with an error that the loss of a worker has caused raises WorkerLostError,
which says which one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lingvo_gpipe.workers import (
  server_wait,
  worker_lost,
  worker_probe,
  worker_watch,
)

# To find out which worker has caused an error.
_EXPLAIN_SECONDS = 3.0


class InterruptedWaitError(Exception):
  """The wait for workers was ended by a wish to stop."""


class RemoteWorkers:
  """A context manager: within it, lost workers are noticed.

  Args:
    addresses: 'host:port' of each.
    wait_seconds: how long to wait for workers that are not there yet.
    lost_seconds: see WorkerWatch.
    on_stuck: see WorkerWatch.
    interrupted: asked while waiting; True ends it.
    show: takes lines for the user.
  """

  def __init__(
    self,
    addresses: Sequence[str],
    *,
    wait_seconds: float = 300.0,
    lost_seconds: float = 15.0,
    on_stuck: Callable[[str], None] = lambda unused_text: None,
    interrupted: Callable[[], bool] = lambda: False,
    show: Callable[[str], Any] = print,
  ):
    self._addresses = tuple(addresses)
    self._wait_seconds = wait_seconds
    self._interrupted = interrupted
    self._show = show
    self._watch = worker_watch.WorkerWatch(
      addresses, lost_seconds=lost_seconds, on_stuck=on_stuck
    )
    self._ready = False

  def __enter__(self) -> RemoteWorkers:
    return self

  @property
  def addresses(self) -> tuple[str, ...]:
    """'host:port' of each worker; waits until all answer.

    Raises:
      WorkerLostError: where one does not in time.
      InterruptedWaitError: where the wait was interrupted.
    """
    if not self._ready:
      self._Await()
      self._ready = True
    return self._addresses

  def Describe(self) -> list[str]:
    """A line about each worker."""
    return [f'worker {k} at {a}' for k, a in enumerate(self._addresses)]

  def _Await(self) -> None:
    started = time.monotonic()
    missing = server_wait.Await(
      self._addresses,
      'worker',
      wait_seconds=self._wait_seconds,
      interrupted=self._interrupted,
      show=self._show,
    )
    if missing and self._interrupted():
      raise InterruptedWaitError()
    if missing:
      raise worker_lost.WorkerLostError(
        f'{len(missing)} of {len(self._addresses)} workers are not there after '
        f'{time.monotonic() - started:.0f} s (--worker_wait): '
        f'{", ".join(missing)}. Each is a process of "trainer --job=worker" at '
        'the address that --worker_hosts gives it; workers of other machines '
        'need --worker_listen=network',
        comes_back=False,
      )
    try:
      self._watch.Start()
    except worker_probe.ProbeError as e:
      raise worker_lost.WorkerLostError(f'a worker {e}') from e

  def Kill(self) -> None:
    """Nothing: they are not ours to end."""

  def __exit__(self, unused_type: Any, error: Any, unused_trace: Any) -> None:
    try:
      if self._ready and worker_lost.IsOfRuntime(error):
        lost = self._watch.FindLost(_EXPLAIN_SECONDS)
        broken = worker_lost.BrokenConnection(error)
        if not lost and broken:
          lost = f'the connection to a worker broke: {broken}'
        if lost:
          raise worker_lost.WorkerLostError(lost) from error
    finally:
      self._watch.Stop()
