"""When checkpoints of a run are written, and writing them in the background.

  step      . . . . S . . . . . S . . .
  training  =======|============|======     | takes the snapshot
  writing           ======       ====       one at a time, in a thread

A checkpoint that cannot be written, because the disk is full for example, is
told at once; training goes on, and tries again when the next one is due. Only
if the last one is missing at the end, the run has failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.train import checkpoint


class Saver:
  """Saves a run's checkpoints."""

  def __init__(
    self,
    checkpointer: checkpoint.Checkpointer,
    params: hyperparams.Params,
    *,
    step: int,
    show: Callable[[str], Any] = print,
  ):
    """Nothing is written yet.

    Args:
      checkpointer: of the run.
      params: the `train` params of the task.
      step: that the run goes on from, whose checkpoint is there.
      show: takes a line; from any thread.
    """
    self._checkpointer = checkpointer
    self._params = params
    self._show = show
    self._step = step  # Of the last save that has not failed.
    self._last_try = time.monotonic()
    self._thread: threading.Thread | None = None
    self._failure: Exception | None = None
    self._fault: BaseException | None = None
    # The last save, until it has succeeded.
    self._write: Callable[[], None] = lambda: None

  # When.

  def NextStop(self, step: int) -> int | None:
    """The first step after `step` that has a checkpoint for its number."""
    p = self._params
    intervals = (p.save_interval_steps, p.save_keep_every_steps)
    stops = [(step // n + 1) * n for n in intervals if n]
    return min(stops, default=None)

  def IsTime(self, step: int) -> bool:
    """Whether one is due at a step for the time that has passed."""
    seconds = self._params.save_interval_seconds
    if not seconds or step == self._step:
      return False
    return time.monotonic() - self._last_try >= seconds

  def IsDue(self, step: int) -> bool:
    """Whether one is due at a step."""
    return step == self.NextStop(step - 1) or self.IsTime(step)

  def Skip(self, seconds: float) -> None:
    """Leaves out of what IsTime counts that training has paused."""
    self._last_try += seconds

  # Saving.

  def Save(
    self,
    step: int,
    metadata: Mapping[str, Any],
    on_saved: Callable[[], Any] = lambda: None,
  ) -> None:
    """Saves the present values, or begins to; waits for the save before.

    Args:
      step: the step they are of. Nothing is done if it has been saved.
      metadata: see Checkpointer.Save.
      on_saved: called when the checkpoint is complete, maybe in a thread. If
        it raises an error of files, the checkpoint counts as not written.
    """
    self.Wait()
    if step == self._step:
      return
    self._step = step
    background = self._params.save_in_background
    if background:
      self._checkpointer.TakeSnapshot()

    def _Write():
      if background:
        self._checkpointer.SaveSnapshot(step, metadata)
      else:
        self._checkpointer.Save(step, metadata)
      self._step = step
      on_saved()

    self._write = _Write
    if background:
      self._thread = threading.Thread(target=self._Try, daemon=True)
      self._thread.start()
    else:
      self._Try()
      self._RaiseFault()

  def IsSaved(self, step: int) -> bool:
    """Whether the checkpoint of a step is complete; waits for it."""
    self.Wait()
    return step == self._step

  def Wait(self) -> None:
    """Waits for what is being written; raises what is no matter of files."""
    if self._thread is not None:
      # In pieces, so that signals are noted meanwhile.
      while self._thread.is_alive():
        self._thread.join(0.5)
      self._thread = None
    self._RaiseFault()

  def Finish(self) -> None:
    """Waits until the last checkpoint is there; tries once more if it failed.

    Raises:
      TrainingError: where it cannot be written.
    """
    self.Wait()
    if self._failure is None:
      return
    self._Try()
    self._RaiseFault()
    if self._failure is not None:
      raise user_error.TrainingError(
        'the last checkpoint of the run could not be written; the same command '
        'goes on from '
        f'{self._checkpointer.Latest() or "the beginning"}: {self._failure}'
      )

  def _Try(self) -> None:
    """Writes; what goes wrong is told, or kept for the main thread."""
    try:
      self._write()
      self._failure = None
      self._write = lambda: None
      self._checkpointer.DropSnapshot()
    except (checkpoint.CheckpointError, OSError) as e:
      self._failure = e
      self._step = -1
      self._show(
        f'warning: {e}. Training goes on; the next try is when the next '
        'checkpoint is due'
      )
    except BaseException as e:
      self._fault = e
    self._last_try = time.monotonic()

  def _RaiseFault(self) -> None:
    fault, self._fault = self._fault, None
    if fault is not None:
      raise fault
