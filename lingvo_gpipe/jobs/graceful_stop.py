"""SIGTERM and SIGINT as a wish to stop, granted between two steps.

  with graceful_stop.GracefulStop() as stop:
    while work and not stop.requested:
      ...
  if stop.requested:
    save(); sys.exit(stop.exit_status)

The second SIGINT does not wait: it raises KeyboardInterrupt at once.
"""

from __future__ import annotations

import signal
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class GracefulStop:
  """A context manager that notes the first signal; main thread only."""

  def __init__(self):
    self._signal: signal.Signals | None = None
    self._previous: dict[int, Any] = {}

  def __enter__(self) -> GracefulStop:
    for number in _SIGNALS:
      self._previous[number] = signal.signal(number, self._Note)
    return self

  def __exit__(self, *unused_exc):
    for number, handler in self._previous.items():
      signal.signal(number, handler)

  def _Note(self, number: int, unused_frame: Any) -> None:
    if number == signal.SIGINT and self._signal == signal.SIGINT:
      raise KeyboardInterrupt
    self._signal = signal.Signals(number)
    # No print: a handler may run in the middle of another one.

  @property
  def requested(self) -> bool:
    """Whether a signal has come."""
    return self._signal is not None

  @property
  def signal_name(self) -> str:
    """'SIGTERM' or 'SIGINT'; '' before any."""
    return self._signal.name if self._signal is not None else ''

  @property
  def exit_status(self) -> int:
    """128 + the signal's number, as shells report it; 0 before any."""
    return 128 + self._signal if self._signal is not None else 0
