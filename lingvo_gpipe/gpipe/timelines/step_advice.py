"""What could make a recorded step shorter, in sentences.

Nothing is said that would gain little: the thresholds below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
from lingvo_gpipe.gpipe.planning import partition, plan_search
from lingvo_gpipe.gpipe.schedules import schedule as schedule_lib

if TYPE_CHECKING:
  from lingvo_gpipe.gpipe.timelines import step_report

# Another cut is proposed if it makes the step shorter by this share.
MIN_CUT_GAIN = 0.05

# Costs are called wrong if a partition's measured share of the work is so many
# times the predicted one.
MAX_SHARE_ERROR = 1.2

# A cell is called too large if its partition takes so many times the mean.
MAX_CELL_SHARE = 1.3

# More micro-batches are proposed if the bubble becomes smaller by this share of
# the step; an interleaved schedule, which sends twice as much, by that one.
MIN_BUBBLE_GAIN = 0.05
MIN_INTERLEAVED_GAIN = 0.1

# Transfers, or the time between passes, are worth a sentence if they lengthen
# the bubble by this share of the step, and themselves take some of it.
MAX_LOSS = 0.1
MIN_CAUSE = 0.02


def Advice(
  report: step_report.StepReport, prediction: step_report.Prediction
) -> tuple[str, ...]:
  """What to change.

  Args:
    report: of the steps; its own `advice` is not read.
    prediction: what was expected.

  Returns:
    Sentences without a full stop; () where all is well.
  """
  return (
    *_CutAdvice(report, prediction),
    *_BubbleAdvice(report, prediction),
    *_LossAdvice(report),
  )


def BetterCut(
  report: step_report.StepReport, prediction: step_report.Prediction
) -> tuple[list[int], float] | None:
  """The best cut by measured costs.

  Measured are partitions, not cells: each cell gets its part of its partition's
  seconds in proportion to its predicted work.

  Args:
    report: of the steps.
    prediction: with ranges and cells.

  Returns:
    (number of cells of each partition, share by which the step gets shorter),
    the share 0 for the present cut; None if the cells are unknown or no
    schedule is like this one.
  """
  if not prediction.cells or not prediction.ranges:
    return None
  if report.scheduled_bubble is None:
    return None
  cells = _MeasuredCells(report, prediction)
  recompute = [
    # Less is what an empty recomputation takes.
    p.recompute > 0.1 * p.forward
    for p in report.partitions
  ]
  num_partitions = len(report.partitions)
  table = schedule_lib.MakeSchedule(
    report.schedule,
    num_partitions,
    report.num_micro_batches,
    report.num_devices,
  )

  def _StepTime(ranges: Sequence[tuple[int, int]]) -> float:
    return plan_search.CutStepTime(table, cells, ranges, recompute)

  present = [tuple(ends) for ends in prediction.ranges]
  # As in plan.py: equal work, and equal passes for fill-drain schedules.
  candidates = [
    present,
    partition.Partition(cells, num_partitions, recompute),
    partition.Partition(cells, num_partitions, [False] * num_partitions),
  ]
  best = min(candidates, key=_StepTime)
  gain = 1 - _StepTime(best) / _StepTime(present)
  return [end - start for start, end in best], gain


def _MeasuredCells(
  report: step_report.StepReport, prediction: step_report.Prediction
) -> list[partition.CellTime]:
  """Seconds of each cell."""

  def _Parts(seconds: float, work: Sequence[float]) -> list[float]:
    if sum(work):
      return [seconds * w / sum(work) for w in work]
    return [seconds / len(work)] * len(work)

  cells = []
  for measured, (start, end) in zip(
    report.partitions, prediction.ranges, strict=True
  ):
    predicted = prediction.cells[start:end]
    forward = _Parts(measured.forward, [c.forward for c in predicted])
    backward = _Parts(measured.backward, [c.backward for c in predicted])
    cells += map(partition.CellTime, forward, backward)
  return cells


def _CutAdvice(
  report: step_report.StepReport, prediction: step_report.Prediction
) -> Iterator[str]:
  partitions = report.partitions
  if len(partitions) == 1:
    return
  work = [p.seconds for p in partitions]
  slowest = max(range(len(work)), key=work.__getitem__)
  ratio = work[slowest] * len(work) / sum(work)
  predicted = partitions[slowest].predicted_share * len(work)
  takes = (
    f'partition {slowest} takes {ratio:.2f} times the mean (predicted: '
    f'{predicted:.2f})'
  )
  better = BetterCut(report, prediction)
  if better is not None and better[1] >= MIN_CUT_GAIN:
    splits, gain = better
    yield (
      f'{takes}; splits={splits} should make the step {gain:.0%} shorter; '
      '--profile_cells measures each cell and cuts by that'
    )
    return
  if ratio >= MAX_CELL_SHARE and prediction.ranges:
    start, end = prediction.ranges[slowest]
    if end - start == 1:
      cell = f'cell {start}'
      if prediction.cell_names:
        cell = prediction.cell_names[start]
      yield (
        f'{takes} and is one cell, {cell}: make smaller cells of it, or use '
        'fewer partitions'
      )
      return
  wrong = max(
    p.share / p.predicted_share for p in partitions if p.predicted_share
  )
  if wrong >= MAX_SHARE_ERROR and better is None:
    yield (
      f'{takes}; predicted costs are off by a factor of up to {wrong:.2f}: '
      '--profile_cells measures each cell and cuts by that'
    )


def _BubbleAdvice(
  report: step_report.StepReport, prediction: step_report.Prediction
) -> Iterator[str]:
  theory, devices = report.theoretical_bubble, report.num_devices
  # Smaller micro-batches would make overhead worse.
  if theory is None or devices == 1 or _IsOverhead(report):
    return
  present = report.num_micro_batches
  chunks = len(report.partitions) // devices
  wish = num_micro_batches_lib.MICRO_BATCHES_PER_PARTITION * devices
  number = _MoreMicroBatches(present, wish, prediction.batch_size)
  is_now = (
    f'the bubble is {report.bubble:.0%}; filling and draining alone make it '
    f'{theory:.0%}'
  )
  if number is not None:
    possible = schedule_lib.BubbleFormula(
      report.schedule, devices, chunks, number
    )
    if theory - possible >= MIN_BUBBLE_GAIN:
      yield (
        f'{is_now}, and num_micro_batches={number} (instead of {present}) '
        f'would make that {possible:.0%}'
      )
      return
  # Two partitions on a device need cells enough, and send twice as much.
  if (
    report.schedule == 'interleaved'
    or len(prediction.cells) < 2 * devices
    or _Loss(report) >= MAX_LOSS
  ):
    return
  possible = schedule_lib.BubbleFormula('interleaved', devices, 2, present)
  if theory - possible >= MIN_INTERLEAVED_GAIN:
    yield (
      f"{is_now}, and schedule='interleaved' with {2 * devices} partitions, "
      f'two on each device, would make that {possible:.0%}'
    )


def _MoreMicroBatches(
  present: int, wish: int, batch_size: int | None
) -> int | None:
  """The smallest number from `wish` on, or the largest there is; or None."""
  if present >= wish:
    return None
  if batch_size is None:
    return wish
  divisors = num_micro_batches_lib.Divisors(batch_size)
  enough = [m for m in divisors if m >= wish]
  number = min(enough, default=divisors[-1])
  return number if number > present else None


def _Loss(report: step_report.StepReport) -> float:
  """How much larger the bubble is than these passes need."""
  if report.scheduled_bubble is None:
    return report.transfer + report.overhead
  return report.bubble - report.scheduled_bubble


def _IsOverhead(report: step_report.StepReport) -> bool:
  """Whether the time between passes is what is lost most."""
  return (
    _Loss(report) >= MAX_LOSS
    and report.overhead >= MIN_CAUSE
    and report.overhead >= report.transfer
  )


def _LossAdvice(report: step_report.StepReport) -> Iterator[str]:
  loss = _Loss(report)
  if loss < MAX_LOSS or max(report.transfer, report.overhead) < MIN_CAUSE:
    return
  lost = f"{loss:.0%} of the devices' time is lost"
  if _IsOverhead(report):
    yield (
      f'{lost}, mostly between two passes of a device: micro-batches are too '
      'small; lower num_micro_batches, or raise the size of the mini-batch'
    )
    return
  hint = 'place partitions closer to each other, cut where cells hand on less'
  if report.schedule == '1f1b':
    hint += ", or hide it with schedule='eager_1f1b', which keeps more inputs"
  elif report.schedule == 'interleaved':
    hint += ', or use fewer partitions on each device'
  yield f'{lost}, mostly to data on its way between devices: {hint}'
