"""Waiting for the checkpoints that a trainer writes, and may delete again."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from lingvo_gpipe import user_error
from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity

# How long a signal to stop, and a new checkpoint, may stay unnoticed.
_POLL_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Found:
  """A complete checkpoint.

  Attributes:
    prefix: of its files.
    step: of the run.
    saved_at: date and time, as text.
    metadata: what the trainer has to say.
  """

  prefix: str
  step: int
  saved_at: str
  metadata: dict[str, Any]


def Look(prefix: str) -> Found | None:
  """A checkpoint as it is at this moment.

  Args:
    prefix: of the checkpoint.

  Returns:
    The checkpoint; None where it has been deleted.

  Raises:
    CheckpointError: where it is there and damaged.
  """
  try:
    info = checkpoint_integrity.ReadInfo(prefix)
  except checkpoint_files.CheckpointError:
    if IsThere(prefix):
      raise
    return None
  return Found(
    prefix, info['global_step'], info.get('saved_at', ''), info['metadata']
  )


def IsThere(prefix: str) -> bool:
  """Whether a checkpoint is complete, and not being deleted."""
  return os.path.exists(f'{prefix}.json')


class CheckpointWatch:
  """Waits for new checkpoints in a directory.

  Args:
    directory: of the checkpoints; need not exist yet.
    interrupted: True ends the waiting.
    timeout: seconds without a new checkpoint after which Wait gives up; 0:
      never.
    show: prints a line.
    now: seconds from any start.
    sleep: waits so many seconds.
  """

  def __init__(
    self,
    directory: str,
    *,
    interrupted: Callable[[], bool],
    timeout: float,
    show: Callable[[str], None],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
  ):
    self._directory = directory
    self._interrupted = interrupted
    self._timeout = timeout
    self._show = show
    self._now = now
    self._sleep = sleep

  def Wait(self, is_new: Callable[[Found], bool], what: str) -> Found | None:
    """The newest checkpoint, as soon as it is a new one.

    Args:
      is_new: whether a checkpoint is what is waited for.
      what: how a line calls that, such as 'a checkpoint after step 20'; shown
        where it has to be waited for.

    Returns:
      The checkpoint; None where it was interrupted.

    Raises:
      TrainingError: when it takes too long.
      CheckpointError: where the newest checkpoint is damaged.
    """
    start = self._now()
    shown = False
    while not self._interrupted():
      latest = checkpoint_files.Latest(self._directory)
      found = latest and Look(latest)
      if found and is_new(found):
        return found
      if not shown:
        self._show(f'waiting for {what} in {self._directory}{self._Note()}')
        shown = True
      if self._timeout and self._now() - start >= self._timeout:
        raise user_error.TrainingError(
          f'{self._timeout:g} seconds (--eval_timeout) have brought no new '
          f'checkpoint: still waiting for {what} in {self._directory}; is the '
          'trainer at work?'
        )
      self._sleep(_POLL_SECONDS)
    return None

  def _Note(self) -> str:
    notes = []
    if not os.path.isdir(self._directory):
      notes.append('which does not exist yet')
    if self._timeout:
      notes.append(f'for {self._timeout:g} s at most')
    return ', '.join(['', *notes])
