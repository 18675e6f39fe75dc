"""The progress line of a training run, and the clock behind it.

  step 120/600 loss 0.3412 accuracy 0.8911 lr 0.05 812 examples/s
    input wait 3% ETA 1m02s        (all on one line)

Pure Python: the clock is an argument, so tests set it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from lingvo_gpipe import log_lines


def Show(line: str) -> None:
  """Prints a line at once, also into a file or pipe; from any thread."""
  log_lines.Show(line)


def Duration(seconds: float) -> str:
  """A length of time in its two largest units: 7s, 1m02s, 3h07m, 2d04h."""
  seconds = max(0, round(seconds))
  if seconds < 60:
    return f'{seconds}s'
  minutes, seconds = divmod(seconds, 60)
  if minutes < 60:
    return f'{minutes}m{seconds:02d}s'
  hours, minutes = divmod(minutes, 60)
  if hours < 24:
    return f'{hours}h{minutes:02d}m'
  days, hours = divmod(hours, 24)
  return f'{days}d{hours:02d}h'


def Number(value: float) -> str:
  """Four decimals, or four digits where those would show nothing."""
  if value == 0 or 1e-3 <= abs(value) < 1e6:
    return f'{value:.4f}'
  return f'{value:.4g}'


def Rate(value: float) -> str:
  """A count per second: whole from 10 on, else with three digits."""
  return f'{value:.0f}' if value >= 10 else f'{value:.3g}'


def Values(values: Mapping[str, float]) -> str:
  """Names and numbers in one line: `loss 0.3412 accuracy 0.8911`."""
  return ' '.join(f'{name} {Number(value)}' for name, value in values.items())


class StepClock:
  """Measures waiting for input and computing, and guesses the time left.

  The first step builds the graph and fills the input's buffers; it is measured
  apart and enters no rate.

  Args:
    now: seconds from any start.

  Attributes:
    first_step_seconds: how long the first step took; None before its end.
    steps: measured steps, all but the first.
    wait_seconds: of them, time spent waiting for input.
    busy_seconds: of them, time in all, without checkpoints and evaluation.
  """

  def __init__(self, now: Callable[[], float] = time.monotonic):
    self._now = now
    self._first_step_end = 0.0
    self._last_wait = 0.0
    self._mark = (0, 0.0, 0.0)
    self._activity = 'preparing the first step'
    self._last_step_end = now()
    self.first_step_seconds: float | None = None
    self.steps = 0
    self.wait_seconds = 0.0
    self.busy_seconds = 0.0

  @contextlib.contextmanager
  def WaitingForInput(self) -> Iterator[None]:
    """Around fetching a batch."""
    start = self._now()
    self._activity = 'waiting for input'
    yield
    self._last_wait = self._now() - start

  @contextlib.contextmanager
  def Computing(self) -> Iterator[None]:
    """Around the training step with that batch."""
    start = self._now()
    self._activity = 'computing a step'
    yield
    end = self._last_step_end = self._now()
    self._activity = 'between two steps'
    busy = self._last_wait + end - start
    if self.first_step_seconds is None:
      self.first_step_seconds = busy
      self._first_step_end = end
      return
    self.steps += 1
    self.wait_seconds += self._last_wait
    self.busy_seconds += busy

  def Activity(self) -> tuple[str, float]:
    """What is being done, and seconds since the last step ended."""
    return self._activity, self._now() - self._last_step_end

  def Interval(self) -> tuple[float, float] | None:
    """(steps per second, share of waiting) since the last call.

    Returns:
      The two; None where no step was measured.
    """
    now = (self.steps, self.wait_seconds, self.busy_seconds)
    steps, wait, busy = (a - b for a, b in zip(now, self._mark, strict=True))
    self._mark = now
    return (steps / busy, wait / busy) if busy > 0 else None

  def SecondsLeft(self, steps_left: int) -> float | None:
    """At the mean pace since the first step, all else that runs included.

    Args:
      steps_left: how many steps are still to do.

    Returns:
      Seconds; None before there is a second step to measure, and at the end.
    """
    if not self.steps or not steps_left:
      return None
    return (self._now() - self._first_step_end) / self.steps * steps_left


def Line(
  step: int,
  max_steps: int,
  values: Mapping[str, float],
  *,
  learning_rate: float,
  per_second: float | None,
  input_wait: float | None,
  seconds_left: float | None,
  unit: str = 'examples',
  skipped: int = 0,
  num_steps: int = 0,
) -> log_lines.Line:
  """One line of progress.

  Args:
    step: steps done.
    max_steps: steps of the whole run.
    values: name and mean of loss and metrics, in the order of the line.
    learning_rate: of the step.
    per_second: how much of `unit` since the line before; None if nothing was
      measured.
    input_wait: share of the time since the line before, 0 to 1; or None.
    seconds_left: until the last step; None if it is not known yet.
    unit: what `per_second` counts.
    skipped: how many steps since the line before changed nothing.
    num_steps: how many there were since then.

  Returns:
    The line.
  """
  parts = [f'step {step}/{max_steps}']
  parts.append(Values(values))
  parts.append(f'lr {learning_rate:.4g}')
  if per_second is not None:
    parts.append(f'{Rate(per_second)} {unit}/s')
  if input_wait is not None:
    parts.append(f'input wait {input_wait:.0%}')
  if seconds_left is not None:
    parts.append(f'ETA {Duration(seconds_left)}')
  if skipped:
    parts.append(f'({skipped} of {num_steps} steps skipped: not finite)')
  told = {
    **values,
    'step': step,
    'max_steps': max_steps,
    'learning_rate': learning_rate,
    f'{unit}_per_second': per_second,
    'input_wait': input_wait,
    'seconds_left': seconds_left,
    'skipped_steps': skipped,
  }
  return log_lines.Line(
    ' '.join(parts), {k: v for k, v in told.items() if v is not None}
  )
