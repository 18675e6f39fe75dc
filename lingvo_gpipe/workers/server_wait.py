"""Waits for servers that are not there yet, and says so."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lingvo_gpipe.workers import worker_probe

# Of a probe, and between two lines that say so.
_PROBE_SECONDS = 2.0
_SHOW_SECONDS = 10.0

Ask = Callable[[worker_probe.WorkerProbe, float], Any]


def Await(
  addresses: Sequence[str],
  name: str,
  *,
  ask: Ask = worker_probe.WorkerProbe.Identity,
  wait_seconds: float = 300.0,
  interrupted: Callable[[], bool] = lambda: False,
  show: Callable[[str], Any] = print,
) -> list[str]:
  """Waits until all servers answer.

  Args:
    addresses: 'host:port' of each.
    name: what they are called in lines, such as 'worker'.
    ask: how they are asked; with seconds to wait at the most.
    wait_seconds: how long to wait for all of them.
    interrupted: asked while waiting; True ends it.
    show: takes a line now and then.

  Returns:
    A text on each server that is not there after that time; empty where all
    are.
  """
  missing = {k: 'was not asked yet' for k in range(len(addresses))}
  started = time.monotonic()
  shown = started - _SHOW_SECONDS + _PROBE_SECONDS
  with contextlib.ExitStack() as stack:
    probes = []
    for address in addresses:
      probes.append(worker_probe.WorkerProbe(address))
      stack.callback(probes[-1].Close)
    while True:
      for k in list(missing):
        if interrupted():
          break
        try:
          ask(probes[k], _PROBE_SECONDS)
          del missing[k]
        except worker_probe.ProbeError as e:
          missing[k] = str(e)
      texts = [
        f'{name} {k} at {addresses[k]} ({reason})'
        for k, reason in missing.items()
      ]
      waited = time.monotonic() - started
      if not missing or waited > wait_seconds or interrupted():
        return texts
      if time.monotonic() - shown > _SHOW_SECONDS:
        shown = time.monotonic()
        show(f'waiting for {", ".join(texts)}')
      time.sleep(0.2)


@contextlib.contextmanager
def Telling(
  what: str, show: Callable[[str], Any], every: float = _SHOW_SECONDS
) -> Iterator[None]:
  """A context for what may block: a line at its start, then now and then.

  Args:
    what: is done in it.
    show: takes a line; from any thread.
    every: seconds between two lines.

  Yields:
    Nothing.
  """
  ended = threading.Event()
  started = time.monotonic()

  def _Run():
    while not ended.wait(every):
      show(f'still {what}, for {time.monotonic() - started:.0f} s')

  show(what)
  thread = threading.Thread(target=_Run, daemon=True)
  thread.start()
  try:
    yield
  finally:
    ended.set()
    thread.join()
