"""What becomes of a job when it loses a worker.

TensorFlow cannot reconnect a process to a cluster that has lost a member: what
was on the workers is gone. So the process becomes a new one by the same
command (execv), which waits for the workers, restores the last checkpoint and
goes on as after any other stop. It can do that from any thread, also while a
step waits for ever for a worker that stands still.

How often that has happened goes from process to process in an environment
variable, for an end where it does not help.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn

from lingvo_gpipe import command_line, user_error
from lingvo_gpipe.jobs import graceful_stop, progress
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import checkpoint_files, summaries
from lingvo_gpipe.workers import worker_lost

VARIABLE = 'LINGVO_GPIPE_RESTARTS'
_MAX_DELAY = 60.0


@dataclasses.dataclass(frozen=True)
class Restarts:
  """What a process knows of those before it.

  Attributes:
    count: how many restarts there were in a row without a new checkpoint.
    step: of the newest checkpoint at the last one; -1: none.
  """

  count: int = 0
  step: int = -1

  @classmethod
  def Read(cls, environ: MutableMapping[str, str] = os.environ) -> Restarts:
    """What the environment says; none where it says nothing sensible."""
    try:
      return cls(**json.loads(environ[VARIABLE]))
    except (KeyError, TypeError, ValueError):
      return cls()

  def Next(self, step: int) -> Restarts:
    """After one more restart.

    Args:
      step: of the newest checkpoint; -1: none.

    Returns:
      The Restarts for the next process.
    """
    return Restarts(1 if step > self.step else self.count + 1, step)

  @property
  def delay(self) -> float:
    """Seconds to wait before the restart: 0, 1, 2, 4, ..."""
    return 0.0 if self.count <= 1 else min(2.0 ** (self.count - 2), _MAX_DELAY)


class Recovery:
  """Restarts a job that has lost a worker, as often as it may.

  Args:
    max_restarts: in a row, without a new checkpoint in between.
    logdir: of the run.
    stop: a wish to stop, which comes before any restart.
  """

  def __init__(
    self,
    max_restarts: int,
    logdir: logdir_lib.LogDir,
    stop: graceful_stop.GracefulStop,
  ):
    self._max_restarts = max_restarts
    self._train_dir = logdir.train_dir
    self._log = logdir.PathOf('restarts.jsonl')
    self._stop = stop
    self._lock = threading.Lock()
    self._kill_workers: Callable[[], Any] = lambda: None

  def SetWorkers(self, workers: Any) -> None:
    """Whose processes, if they are ours, end before the restart."""
    self._kill_workers = workers.Kill

  def Restart(self, error: worker_lost.WorkerLostError) -> None:
    """Becomes a new process, if that may help.

    Args:
      error: the loss.

    Raises:
      TrainingError: where it may not; says why.
    """
    with self._lock:
      if self._stop.requested:
        raise user_error.TrainingError(
          f'stopped by {self._stop.signal_name}; {error}: nothing was saved '
          f'since {self._Latest() or "the start"}. The same command goes on '
          'from there'
        ) from error
      restarts = Restarts.Read().Next(self._Step())
      hint = 'The same command goes on from the last checkpoint'
      if not self._max_restarts or not error.comes_back:
        raise user_error.TrainingError(f'{error}. {hint}') from error
      if restarts.count > self._max_restarts:
        raise user_error.TrainingError(
          f'{error}. That was after {self._max_restarts} restarts without a '
          f'new checkpoint (--worker_restarts). {hint}'
        ) from error
      self._Log(str(error), restarts)
      progress.Show(
        f'lost: {error}; restart {restarts.count} of {self._max_restarts} '
        f'without progress, from {self._Latest() or "the beginning"}'
      )
      self._Sleep(restarts.delay)
      _Become(restarts)

  def OnStuck(self, text: str) -> NoReturn:
    """Called by a watch, from its thread, while a step hangs.

    Args:
      text: what was lost.
    """
    self._kill_workers()
    try:
      self.Restart(worker_lost.WorkerLostError(text))
    except user_error.UserError as e:
      status = command_line.ShowError(e)
      os._exit(self._stop.exit_status or status)

  def _Log(self, reason: str, restarts: Restarts) -> None:
    """Adds a line to restarts.jsonl; a restart does not fail for want of it."""
    entry = {
      'time': datetime.datetime.now(datetime.UTC).isoformat(),
      'reason': reason,
      'from_step': max(restarts.step, 0),
      'in_a_row': restarts.count,
    }
    with contextlib.suppress(OSError):
      summaries.AppendJson(self._log, entry)

  def _Sleep(self, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not self._stop.requested and time.monotonic() < deadline:
      time.sleep(0.1)

  def _Latest(self) -> str | None:
    return checkpoint_files.Latest(self._train_dir)

  def _Step(self) -> int:
    latest = self._Latest()
    return -1 if latest is None else checkpoint_files.StepOf(latest)


def _Become(restarts: Restarts) -> NoReturn:
  """Replaces this process by a new one of the same command."""
  os.environ[VARIABLE] = json.dumps(dataclasses.asdict(restarts))
  sys.stdout.flush()
  sys.stderr.flush()
  for name in os.listdir('/proc/self/fd'):
    number = int(name)
    if number > 2:
      try:
        flags = fcntl.fcntl(number, fcntl.F_GETFD)
        fcntl.fcntl(number, fcntl.F_SETFD, flags | fcntl.FD_CLOEXEC)
      except OSError:  # That of the listing itself.
        continue
  os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
