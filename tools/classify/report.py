"""What classify prints: a line for each file, and progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import numpy as np

from lingvo_gpipe.jobs import progress

_SECONDS_BETWEEN_LINES = 5.0


def Top(probabilities: np.ndarray, count: int) -> list[int]:
  """The most likely classes, the most likely first.

  Args:
    probabilities: [classes].
    count: how many classes, if there are so many.

  Returns:
    Their numbers; of equal ones the smaller number first.
  """
  return [int(i) for i in np.argsort(-probabilities, kind='stable')[:count]]


def TextLine(
  file: str, probabilities: np.ndarray, names: Sequence[str], count: int
) -> str:
  """`cat.jpg: tabby 0.9120, tiger cat 0.0613`.

  Args:
    file: its name.
    probabilities: [classes].
    names: of all classes.
    count: how many classes the line has.

  Returns:
    The line.
  """
  parts = [
    f'{names[i]} {probabilities[i]:.4f}' for i in Top(probabilities, count)
  ]
  return f'{file}: {", ".join(parts)}'


def JsonLine(
  file: str, probabilities: np.ndarray, names: Sequence[str], count: int
) -> str:
  """{"file": "cat.jpg", "classes": [{"class", "name", "probability"}, ...]}.

  Args:
    file: its name.
    probabilities: [classes].
    names: of all classes.
    count: how many classes the line has.

  Returns:
    A JSON object in one line.
  """
  classes = [
    {'class': i, 'name': names[i], 'probability': float(probabilities[i])}
    for i in Top(probabilities, count)
  ]
  return json.dumps({'file': file, 'classes': classes})


class Progress:
  """Lines of progress, at most one every few seconds.

  Args:
    total: how many files there are.
    show: takes a line.
    now: seconds from any start.
  """

  def __init__(
    self,
    total: int,
    show: Callable[[str], None],
    now: Callable[[], float] = time.monotonic,
  ):
    self._total = total
    self._show = show
    self._now = now
    self._start = self._last = now()

  def Done(self, count: int) -> None:
    """Says how far things are.

    Args:
      count: files done so far.
    """
    now = self._now()
    if now - self._last < _SECONDS_BETWEEN_LINES or count >= self._total:
      return
    self._last = now
    rate = count / (now - self._start)
    left = progress.Duration((self._total - count) / rate)
    self._show(
      f'{count:,} of {self._total:,} pictures, {progress.Rate(rate)}/s, ETA '
      f'{left}'
    )
