"""Watches workers' servers, and notices within seconds that one is lost.

A worker whose process has ended makes the client's step fail at once. One that
stands still, or that no message reaches any more, would let it wait for ever:
nothing can interrupt a step. Then `on_stuck` is called, from a thread, for
whatever ends the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from lingvo_gpipe.workers import worker_probe

# So many probes in a row have to fail, whatever the time: the process itself
# may have stood still.
_MIN_FAILURES = 3
_MAX_INTERVAL = 1.0
# How long the client may take to notice a loss by itself.
_GRACE = 3.0
# A process that waits for a busy core answers late when it has just begun.
_FIRST_ANSWER = 20.0


class WorkerWatch:
  """Probes all workers until Stop.

  Args:
    addresses: 'host:port' of each.
    lost_seconds: a worker that has not answered for so long is lost. One that
      refuses connections is at once.
    on_stuck: called once with what was lost, some seconds after it was, unless
      Stop is called before.
  """

  def __init__(
    self,
    addresses: Sequence[str],
    *,
    lost_seconds: float,
    on_stuck: Callable[[str], None],
  ):
    self._lost_seconds = lost_seconds
    self._interval = min(_MAX_INTERVAL, lost_seconds / 6)
    self._on_stuck = on_stuck
    self._probes = [worker_probe.WorkerProbe(a) for a in addresses]
    self._identities: list[bytes] = []
    self._lost: dict[int, str] = {}
    self._noticed = threading.Event()
    self._stopped = threading.Event()

  def Start(self) -> None:
    """Begins to watch; the workers must be there.

    Raises:
      ProbeError: where one is not.
    """
    self._identities = [p.Identity(_FIRST_ANSWER) for p in self._probes]
    targets = [(self._Watch, (k,)) for k in range(len(self._probes))]
    for target, args in [*targets, (self._WaitForClient, ())]:
      threading.Thread(target=target, args=args, daemon=True).start()

  def Stop(self) -> None:
    """Ends the watch; may be called again."""
    self._stopped.set()

  def FindLost(self, seconds: float) -> str:
    """Which worker is lost.

    Args:
      seconds: to wait for all to answer, or one to be found lost.

    Returns:
      A sentence without a stop; '' where all are there.
    """
    deadline = time.monotonic() + seconds
    for k, probe in enumerate(self._probes):
      try:
        self._CheckIdentity(k, probe.Identity(max(0.5, seconds)))
      except worker_probe.ProbeError as e:
        self._Lose(k, str(e))
    self._noticed.wait(max(0.0, deadline - time.monotonic()))
    return self._Text()

  def _Text(self) -> str:
    return '; '.join(
      f'worker {k} at {self._probes[k].address} {reason}'
      for k, reason in sorted(dict(self._lost).items())
    )

  def _Lose(self, k: int, reason: str) -> None:
    self._lost.setdefault(k, reason)
    self._noticed.set()

  def _CheckIdentity(self, k: int, identity: bytes) -> None:
    if self._identities and identity != self._identities[k]:
      self._Lose(k, 'has ended and was started anew')

  def _Watch(self, k: int) -> None:
    """Probes worker k until it is lost."""
    probe = self._probes[k]
    last_answer, failures = time.monotonic(), 0
    while k not in self._lost:
      if self._stopped.wait(self._interval):
        probe.Close()
        return
      try:
        self._CheckIdentity(k, probe.Identity(self._interval))
        last_answer, failures = time.monotonic(), 0
        continue
      except worker_probe.ProbeError as e:
        error = e
      failures += 1
      if isinstance(error, worker_probe.RefusedError):
        if failures > 1:
          self._Lose(k, f'{error}: its server has ended')
        continue
      silent = time.monotonic() - last_answer
      if silent < self._lost_seconds or failures < _MIN_FAILURES:
        continue
      try:
        # It may be too busy for the one call, but not for the other.
        probe.CheckAlive(self._interval)
        last_answer, failures = time.monotonic(), 0
      except worker_probe.ProbeError:
        self._Lose(
          k,
          f'has not answered for {silent:.1f} s: it stands still, or the '
          'connection is cut',
        )

  def _WaitForClient(self) -> None:
    """Calls on_stuck where the client does not notice a loss by itself."""
    while not self._noticed.wait(self._interval):
      if self._stopped.is_set():
        return
    if not self._stopped.wait(_GRACE):
      self._on_stuck(self._Text())
