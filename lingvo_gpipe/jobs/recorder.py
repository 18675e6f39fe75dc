"""What training steps give, kept on the devices until somebody looks.

Reading a scalar waits for the step that makes it. So steps are only collected,
and every `log_interval_steps` all of them are read together: into the log of
exact values (step_log.py), TensorBoard's summaries and the line of progress.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.jobs import progress, step_log, step_timing

# Where cells report more, the line of progress leaves them to the log and to
# TensorBoard: a deep model would make it unreadable.
_MAX_CELL_METRICS_IN_LINE = 4


@dataclasses.dataclass(frozen=True)
class StepRecord:
  """The numbers of one step; see BaseTask.TrainStep.

  Attributes:
    step: steps done, this one included.
    loss: the objective.
    metrics: {name: (total, weight)}.
    aux_losses: {name: share of the objective}.
    cell_metrics: {layer path + '/' + name: (total, weight)}, see AddMetric.
    learning_rate: of the step.
    grad_norm: before clipping.
    skipped: whether the step changed nothing.
  """

  step: int
  loss: float
  metrics: dict[str, tuple[float, float]]
  aux_losses: dict[str, float]
  cell_metrics: dict[str, tuple[float, float]]
  learning_rate: float
  grad_norm: float
  skipped: bool

  @classmethod
  def Fetch(cls, step: int, outputs: Any) -> StepRecord:
    """Reads the tensors that TrainStep returned."""
    return cls(
      step=step,
      loss=float(outputs.loss),
      metrics={
        name: value
        for name, value in _FetchSums(outputs.metrics).items()
        if name != 'loss'  # The objective without auxiliary losses.
      },
      aux_losses={k: float(v) for k, v in outputs.aux_losses.items()},
      cell_metrics=_FetchSums(outputs.cell_metrics),
      learning_rate=float(outputs.learning_rate),
      grad_norm=float(outputs.grad_norm),
      skipped=bool(outputs.update_skipped),
    )

  def Scalars(self) -> dict[str, float]:
    """Everything under the names of summaries."""
    return {
      'loss': self.loss,
      **{k: t / w for k, (t, w) in self.metrics.items() if w},
      **{f'aux_loss/{k}': v for k, v in self.aux_losses.items()},
      **{
        f'cell_metric/{k}': t / w
        for k, (t, w) in self.cell_metrics.items()
        if w
      },
      'learning_rate': self.learning_rate,
      'grad_norm': self.grad_norm,
    }


class Recorder:
  """Collects steps and writes about them.

  Args:
    params: the `train` params of the task.
    batch_size: examples of a mini-batch.
    clock: runs in the training loop.
    log: of exact values.
    write_summary: called with (step, {name: value}).
    show: prints a line.
    timing: is given the times of each step; None: nobody is.
  """

  def __init__(
    self,
    params: hyperparams.Params,
    *,
    batch_size: int,
    clock: progress.StepClock,
    log: step_log.StepLog,
    write_summary: Callable[[int, dict[str, float]], None],
    show: Callable[[str], None] = print,
    timing: step_timing.StepTiming | None = None,
  ):
    self._timing = timing
    self._params = params
    self._batch_size = batch_size
    self._clock = clock
    self._log = log
    self._write_summary = write_summary
    self._show = show
    self._pending: list[tuple[int, Any]] = []
    self._since_line: list[StepRecord] = []
    self._skipped_in_a_row = 0
    self._started = False

  def Add(self, step: int, outputs: Any) -> None:
    """Collects a step; writes when a line of progress is due.

    Args:
      step: steps done, this one included.
      outputs: of BaseTask.TrainStep.

    Raises:
      TrainingError: after too many skipped steps in a row.
    """
    p = self._params
    times = outputs.pop('times', None)
    self._pending.append((step, outputs))
    if not self._started:
      self._started = True
      self._show(
        f'first step done in {self._clock.first_step_seconds:.1f} s, most of '
        'it to build the graph'
      )
    if self._timing is not None:
      self._timing.Add(times)
    if step % p.log_interval_steps == 0 or step == p.max_steps:
      self.Flush()
      self._WriteLine(step)
      self._Check()

  def Flush(self) -> None:
    """Reads and logs what was collected, as before a checkpoint."""
    records = [StepRecord.Fetch(*pending) for pending in self._pending]
    self._pending = []
    self._since_line += records
    self._log.Append(
      {'step': r.step, **r.Scalars(), 'skipped': r.skipped} for r in records
    )
    every = self._params.summary_interval_steps
    for r in records:
      self._skipped_in_a_row = self._skipped_in_a_row + 1 if r.skipped else 0
      if every and r.step % every == 0:
        self._write_summary(r.step, r.Scalars())

  def _WriteLine(self, step: int) -> None:
    """Means over the steps since the last line, and rates."""
    records, self._since_line = self._since_line, []
    interval = self._clock.Interval()
    examples_per_second = input_wait = None
    if interval is not None:
      steps_per_second, input_wait = interval
      examples_per_second = steps_per_second * self._batch_size
      if self._params.summary_interval_steps:
        self._write_summary(
          step,
          {
            'examples_per_second': examples_per_second,
            'input_wait': input_wait,
          },
        )
    line = progress.Line(
      step,
      self._params.max_steps,
      _Means([r for r in records if not r.skipped]),
      learning_rate=records[-1].learning_rate,
      examples_per_second=examples_per_second,
      input_wait=input_wait,
      seconds_left=self._clock.SecondsLeft(self._params.max_steps - step),
    )
    skipped = sum(r.skipped for r in records)
    if skipped:
      line += f' ({skipped} of {len(records)} steps skipped: not finite)'
    self._show(line)

  def _Check(self) -> None:
    if self._skipped_in_a_row >= self._params.max_nonfinite_steps:
      raise user_error.TrainingError(
        f'the last {self._skipped_in_a_row} steps had gradients that are not '
        'finite and changed nothing: training has diverged; lower '
        'train.learner.learning_rate, set '
        'train.learner.clip_gradient_norm_to_value, or check the input '
        '(train.max_nonfinite_steps sets the patience)'
      )


def _FetchSums(sums: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
  """Reads WeightedSums as (total, weight)."""
  return {k: (float(v.total), float(v.weight)) for k, v in sums.items()}


def _Means(records: list[StepRecord]) -> dict[str, float]:
  """Mean loss and metrics; not a number where all steps were skipped."""
  if not records:
    return {'loss': float('nan')}
  means = {'loss': sum(r.loss for r in records) / len(records)}
  means.update(_MeansOfSums([r.metrics for r in records]))
  cell_means = _MeansOfSums([r.cell_metrics for r in records])
  if len(cell_means) <= _MAX_CELL_METRICS_IN_LINE:
    means.update(cell_means)
  return means


def _MeansOfSums(
  steps: list[dict[str, tuple[float, float]]],
) -> dict[str, float]:
  """Sum of totals over sum of weights; nothing for what had no weight."""
  means = {}
  for name in steps[0]:
    weight = sum(step[name][1] for step in steps)
    if weight:
      means[name] = sum(step[name][0] for step in steps) / weight
  return means
