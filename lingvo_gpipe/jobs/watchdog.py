"""Tells what a run is doing when it seems to do nothing.

  with watchdog.Watchdog(300.0, clock.Activity, progress.Show):
    ...

A thread looks at what the main thread is at. It never ends anything: a long
evaluation is as legitimate as a hanging file system is not.
"""

from __future__ import annotations

import pathlib
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from lingvo_gpipe.jobs import progress

# Not resolved: Bazel runs from a folder of links.
_ROOT = pathlib.Path(__file__).absolute().parents[2]


class Watchdog:
  """A context manager; made in the main thread.

  Args:
    seconds: without progress, from when on it tells; 0: it never does.
    activity: returns what is being done and since how many seconds.
    show: takes a line.
  """

  def __init__(
    self,
    seconds: float,
    activity: Callable[[], tuple[str, float]],
    show: Callable[[str], Any],
  ):
    self._seconds = seconds
    self._activity = activity
    self._show = show
    self._watched = threading.get_ident()
    self._ended = threading.Event()

  def __enter__(self) -> Watchdog:
    if self._seconds:
      threading.Thread(target=self._Run, daemon=True).start()
    return self

  def __exit__(self, *unused_exc: Any) -> None:
    self._ended.set()

  def _Run(self) -> None:
    limit = self._seconds
    while not self._ended.wait(min(1.0, self._seconds / 4)):
      what, seconds = self._activity()
      if seconds < self._seconds:
        limit = self._seconds
      elif seconds >= limit:
        limit = 2 * seconds
        self._show(
          f'no step has ended for {progress.Duration(seconds)}: {what}, at '
          f'{self._Position()}'
        )

  def _Position(self) -> str:
    """Where the watched thread is, as far as it is in this project's code."""
    frame = sys._current_frames().get(self._watched)
    stack = traceback.extract_stack(frame) if frame else []
    own = [
      s for s in stack if _ROOT in pathlib.Path(s.filename).absolute().parents
    ]
    return ' > '.join(
      f'{pathlib.Path(s.filename).name}:{s.lineno} {s.name}' for s in own[-3:]
    )
