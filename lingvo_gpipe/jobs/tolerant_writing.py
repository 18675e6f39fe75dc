"""Logs and summaries that cannot be written do not end training.

writing = tolerant_writing.TolerantWriting(show)
with writing('the log of steps'):
  log.Append(records)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from lingvo_gpipe.train import error_reason


class TolerantWriting:
  """Makes contexts in which errors of files are told, once for each kind.

  Args:
    show: takes a line.
  """

  def __init__(self, show: Callable[[str], Any]):
    self._show = show
    self._told: set[str] = set()

  @contextlib.contextmanager
  def __call__(self, what: str) -> Iterator[None]:
    """A context that errors of files do not leave.

    Args:
      what: is written in it.
    """
    try:
      yield
    except (OSError, tf.errors.OpError) as e:
      if what not in self._told:
        self._told.add(what)
        self._show(
          f'warning: cannot write {what}: {error_reason.Reason(e)}; '
          'training goes on, and this is not told again'
        )
