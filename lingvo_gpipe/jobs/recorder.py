"""What training steps give, kept on the devices until somebody looks.

Reading a scalar waits for the step that makes it. So steps are only collected,
and every `log_interval_steps` all of them are read together: into the log of
exact values (step_log.py), TensorBoard's summaries and the line of progress.

What depends on partitions and machines goes into a log of its own, so that two
runs are the same where their lines in the first one are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.jobs import (
  progress,
  step_log,
  step_timing,
  tolerant_writing,
)

# Where cells report more, the line of progress leaves them to the log and to
# TensorBoard: a deep model would make it unreadable.
_MAX_CELL_METRICS_IN_LINE = 4


@dataclasses.dataclass(frozen=True)
class StepRecord:
  """The numbers of one step; see BaseTask.TrainStep.

  Attributes:
    step: steps done, this one included.
    loss: the objective.
    weight: of the loss, such as how many tokens there were.
    metrics: {name: (total, weight)}.
    aux_losses: {name: share of the objective}.
    cell_metrics: {layer path + '/' + name: (total, weight)}, see AddMetric.
    learning_rate: of the step.
    grad_norm: before clipping.
    partition_grad_norms: likewise, of each partition's gradients.
    skipped: whether the step changed nothing.
  """

  step: int
  loss: float
  weight: float
  metrics: dict[str, tuple[float, float]]
  aux_losses: dict[str, float]
  cell_metrics: dict[str, tuple[float, float]]
  learning_rate: float
  grad_norm: float
  partition_grad_norms: tuple[float, ...]
  skipped: bool

  @classmethod
  def Fetch(cls, step: int, outputs: Any) -> StepRecord:
    """Reads the tensors that TrainStep returned."""
    metrics = _FetchSums(outputs.metrics)
    # The objective without auxiliary losses; only its weight is told.
    unused_total, weight = metrics.pop('loss', (0.0, 0.0))
    return cls(
      step=step,
      loss=float(outputs.loss),
      weight=weight,
      metrics=metrics,
      aux_losses={k: float(v) for k, v in outputs.aux_losses.items()},
      cell_metrics=_FetchSums(outputs.cell_metrics),
      learning_rate=float(outputs.learning_rate),
      grad_norm=float(outputs.grad_norm),
      partition_grad_norms=tuple(
        map(float, np.asarray(outputs.partition_grad_norms))
      ),
      skipped=bool(outputs.update_skipped),
    )

  def Scalars(self) -> dict[str, float]:
    """What no partition changes, under the names of summaries."""
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

  def PartitionScalars(self) -> dict[str, float]:
    """What there is of each partition, under the names of summaries."""
    return {
      f'grad_norm/partition_{k}': norm
      for k, norm in enumerate(self.partition_grad_norms)
    }


class Recorder:
  """Collects steps and writes about them.

  Args:
    params: the `train` params of the task.
    batch_size: examples of a mini-batch.
    unit: what rates count: 'examples', or what the weights of the loss count.
    clock: runs in the training loop.
    log: of exact values.
    device_log: of partitions and devices.
    write_summary: called with (step, {name: value}).
    show: prints a line.
    timing: is given the times of each step; None: nobody is.
    measure: called with the times of a step with which a line of progress is
      due; returns {name: number} on the devices. None: nothing is measured.
    explain: called with (steps done before, mini-batch) of a step that was
      skipped, before anything has changed; returns where numbers ceased to be
      finite. None: nobody is asked.
  """

  def __init__(
    self,
    params: hyperparams.Params,
    *,
    batch_size: int,
    unit: str = 'examples',
    clock: progress.StepClock,
    log: step_log.StepLog,
    device_log: step_log.StepLog,
    write_summary: Callable[[int, dict[str, float]], None],
    show: Callable[[str], None] = print,
    timing: step_timing.StepTiming | None = None,
    measure: Callable[[Any], dict[str, float]] | None = None,
    explain: Callable[[int, Any], str] | None = None,
  ):
    self._timing = timing
    self._measure = measure
    self._params = params
    self._batch_size = batch_size
    self._unit = unit
    self._clock = clock
    self._log = log
    self._device_log = device_log
    self._write_summary = write_summary
    self._show = show
    self._explain = explain
    self._explained: tuple[int, str] | None = None
    self._writing = tolerant_writing.TolerantWriting(show)
    self._pending: list[tuple[int, Any]] = []
    self._since_line: list[StepRecord] = []
    self._skipped_in_a_row = 0
    self._started = False

  def Add(self, step: int, outputs: Any, batch: Any = None) -> None:
    """Collects a step; writes when a line of progress is due.

    Args:
      step: steps done, this one included.
      outputs: of BaseTask.TrainStep.
      batch: the mini-batch of the step.

    Raises:
      TrainingError: after too many skipped steps in a row; after the first one
        where params.nonfinite is 'stop'.
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
      with self._writing('what partitions took'):
        self._timing.Add(times)
    skipped = _IsKnown(outputs.update_skipped) and bool(outputs.update_skipped)
    if skipped and self._explained is None:
      self._Explain(step, batch)
    if skipped and p.nonfinite == 'stop':
      self.Flush()
      raise user_error.TrainingError(
        f'the gradients of step {step} are not finite, and nothing was changed '
        f'by it (train.nonfinite="stop"){self._Explanation(step)}'
      )
    if step % p.log_interval_steps == 0 or step == p.max_steps:
      measured = self._measure(times) if self._measure is not None else {}
      self.Flush(measured)
      self._WriteLine(step, measured)
      self._Check(step, batch)

  def Flush(self, measured: Mapping[str, float] | None = None) -> None:
    """Reads and logs what was collected, as before a checkpoint.

    Args:
      measured: on the devices, at the last of these steps.
    """
    records = [StepRecord.Fetch(*pending) for pending in self._pending]
    self._pending = []
    self._since_line += records
    with self._writing('the log of steps'):
      self._log.Append(
        {'step': r.step, **r.Scalars(), 'skipped': r.skipped} for r in records
      )
    lines = [{'step': r.step, **r.PartitionScalars()} for r in records]
    if measured:
      lines[-1].update(measured)
    with self._writing('the log of devices'):
      self._device_log.Append(lines)
    every = self._params.summary_interval_steps
    for r in records:
      self._skipped_in_a_row = self._skipped_in_a_row + 1 if r.skipped else 0
      if every and r.step % every == 0:
        self._WriteSummary(r.step, {**r.Scalars(), **r.PartitionScalars()})

  def _WriteSummary(self, step: int, values: dict[str, float]) -> None:
    with self._writing('summaries'):
      self._write_summary(step, values)

  def _WriteLine(self, step: int, measured: Mapping[str, float]) -> None:
    """Means over the steps since the last line, rates, and what is measured."""
    records, self._since_line = self._since_line, []
    interval = self._clock.Interval()
    per_second = input_wait = None
    summary = dict(measured)
    if interval is not None:
      steps_per_second, input_wait = interval
      per_second = steps_per_second * self._StepSize(records)
      summary[f'{self._unit}_per_second'] = per_second
      summary['input_wait'] = input_wait
    if summary and self._params.summary_interval_steps:
      self._WriteSummary(step, summary)
    line = progress.Line(
      step,
      self._params.max_steps,
      _Means([r for r in records if not r.skipped]),
      learning_rate=records[-1].learning_rate,
      per_second=per_second,
      input_wait=input_wait,
      seconds_left=self._clock.SecondsLeft(self._params.max_steps - step),
      unit=self._unit,
      skipped=sum(r.skipped for r in records),
      num_steps=len(records),
    )
    self._show(line)

  def _StepSize(self, records: list[StepRecord]) -> float:
    """How much of the unit a step has, on average."""
    if self._unit == 'examples':
      return self._batch_size
    return sum(r.weight for r in records) / len(records)

  def _Check(self, step: int, batch: Any) -> None:
    p = self._params
    in_a_row = self._skipped_in_a_row
    if not in_a_row:
      return
    if p.nonfinite == 'stop' or in_a_row >= p.max_nonfinite_steps:
      self._Explain(step, batch)
      raise user_error.TrainingError(
        f'the last {in_a_row} steps had gradients that are not '
        'finite and changed nothing: training has diverged; lower '
        'train.learner.learning_rate, set '
        'train.learner.clip_gradient_norm_to_value, or check the input '
        '(train.max_nonfinite_steps sets the patience)'
        f'{self._Explanation(step)}'
      )
    if self._explained is None:
      # Only now known, but the step just done is one of them.
      self._Explain(step, batch)

  def _Explain(self, step: int, batch: Any) -> None:
    """Tells where the numbers of the step just done ceased to be finite."""
    if self._explain is None or (self._explained or (None,))[0] == step:
      return
    self._explained = step, self._explain(step - 1, batch)
    self._show(f'step {step} was skipped: {self._explained[1]}')

  def _Explanation(self, step: int) -> str:
    explained = self._explained
    return f'. {explained[1]}' if explained and explained[0] == step else ''


def _IsKnown(scalar: Any) -> bool:
  """Whether reading a scalar waits for no accelerator."""
  return 'CPU' in getattr(scalar, 'backing_device', 'CPU')


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
