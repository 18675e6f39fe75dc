"""Recorded steps against what the plan predicted.

`MakeReport` takes timelines of several steps and a `Prediction`. Its result is
plain data that prints as lines for the log (`ToText`) and as JSON (`ToJson`).
Means over micro-batches become medians over steps, so that one step that was
disturbed doesn't count.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lingvo_gpipe import text_table
from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.gpipe.schedules import schedule
from lingvo_gpipe.gpipe.timelines import idle_time, step_advice, timeline_text
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

if TYPE_CHECKING:
  from lingvo_gpipe.gpipe.planning import plan as plan_lib


@dataclasses.dataclass(frozen=True)
class Prediction:
  """What was expected of the step.

  Attributes:
    shares: each partition's share of the work of a step.
    balance: mean over maximum of the partitions' work.
    bubble: share of the devices' time in which they do not compute, with the
      partitions as they were cut.
    ranges: the cut, (start, end) of cells for each partition; () if unknown.
    cells: predicted work of each cell, in any unit; () if unknown. With ranges
      and cells the advice can say which cut would be better.
    cell_names: of all cells; () if unknown.
    batch_size: examples that a replica has of a mini-batch, for advice on
      micro-batches; None if unknown.
  """

  shares: tuple[float, ...]
  balance: float
  bubble: float
  ranges: tuple[tuple[int, int], ...] = ()
  cells: tuple[partition.CellTime, ...] = ()
  cell_names: tuple[str, ...] = ()
  batch_size: int | None = None


def FromPlan(
  plan: plan_lib.PipelinePlan,
  cells: Sequence[partition.CellTime] = (),
) -> Prediction:
  """The prediction of a plan.

  Args:
    plan: of the pipeline.
    cells: the work of the cells that it was made with; () if they are not at
      hand.

  Returns:
    The prediction.
  """
  return Prediction(
    shares=tuple(stage.share for stage in plan.stages),
    balance=plan.balance,
    bubble=1 - plan.utilization,
    ranges=tuple(plan.partitions),
    cells=tuple(cells),
    cell_names=tuple(plan.cell_names),
    batch_size=plan.num_micro_batches * plan.micro_batch_size,
  )


@dataclasses.dataclass(frozen=True)
class PartitionReport:
  """A partition; seconds are those of one micro-batch.

  Attributes:
    device: its name.
    policy: what it computes again.
    forward: seconds of the forward pass.
    recompute: seconds of the recomputation.
    backward: seconds of the backward pass.
    share: of all that is computed in a step, measured.
    predicted_share: likewise.
  """

  device: str
  policy: str
  forward: float
  recompute: float
  backward: float
  share: float
  predicted_share: float

  @property
  def seconds(self) -> float:
    return self.forward + self.recompute + self.backward


@dataclasses.dataclass(frozen=True)
class StepReport:
  """Measured and predicted.

  Attributes:
    heading: what ran, in one line.
    num_steps: how many steps were recorded.
    step_seconds: median time from the first pass to the last.
    shortest_seconds: of the shortest step.
    longest_seconds: of the longest step.
    schedule: name.
    num_devices: D.
    num_micro_batches: M.
    partitions: one for each.
    balance: mean over maximum of the partitions' work, measured.
    predicted_balance: likewise.
    bubble: share of the devices' time in which they did not compute.
    scheduled_bubble: what it would be with just these passes on just this
      schedule: what is more is due to transfers, overhead and passes of uneven
      length. None where devices are shared in a way that no schedule has.
    predicted_bubble: the plan's.
    theoretical_bubble: were all passes equally long; None if unknown.
    waiting: share of the devices' time, see idle_time.py.
    transfer: likewise.
    overhead: likewise.
    clocks: sentences on clocks that disagree.
    advice: sentences; none where all is well.
  """

  heading: str
  num_steps: int
  step_seconds: float
  shortest_seconds: float
  longest_seconds: float
  schedule: str
  num_devices: int
  num_micro_batches: int
  partitions: tuple[PartitionReport, ...]
  balance: float
  predicted_balance: float
  bubble: float
  scheduled_bubble: float | None
  predicted_bubble: float
  theoretical_bubble: float | None
  waiting: float
  transfer: float
  overhead: float
  clocks: tuple[str, ...]
  advice: tuple[str, ...] = ()

  def ToJson(self) -> dict[str, Any]:
    """All fields, ready for json.dump."""
    plain = dataclasses.asdict(self)
    for name in ('partitions', 'clocks', 'advice'):
      plain[name] = list(plain[name])
    return plain

  def ToText(self) -> str:
    """Several lines for the log."""
    names = timeline_text.ShortNames([p.device for p in self.partitions])
    seconds = timeline_text.Seconds
    rows = [
      (
        'partition',
        'device',
        'policy',
        *timeline_lib.KINDS,
        'share',
        'predicted',
      )
    ]
    rows += [
      (
        str(k),
        names[p.device],
        p.policy,
        seconds(p.forward),
        seconds(p.recompute),
        seconds(p.backward),
        f'{p.share:.1%}',
        f'{p.predicted_share:.1%}',
      )
      for k, p in enumerate(self.partitions)
    ]
    return '\n'.join(
      [
        self.heading,
        f'Step: {seconds(self.step_seconds)}, median of {self.num_steps} '
        f'({seconds(self.shortest_seconds)} to '
        f'{seconds(self.longest_seconds)}), from the first pass to the last. '
        'For a micro-batch:',
        *text_table.Aligned(rows, left=(1, 2)),
        f'Balance: measured {self.balance:.1%}, predicted '
        f'{self.predicted_balance:.1%}.',
        self._BubbleText(),
        f"Devices' time: computing {1 - self.bubble:.1%}, waiting for others "
        f'{self.waiting:.1%}, transfer {self.transfer:.1%}, overhead '
        f'{self.overhead:.1%}.',
        *self.clocks,
        *(f'Advice: {advice}' for advice in self.advice),
      ]
    )

  def _BubbleText(self) -> str:
    parts = [
      f'Bubble: measured {self.bubble:.1%}',
      f'predicted {self.predicted_bubble:.1%}',
    ]
    if self.scheduled_bubble is not None:
      parts.append(
        f'{self.scheduled_bubble:.1%} with these passes on this schedule'
      )
    if self.theoretical_bubble is not None:
      parts.append(
        f'{self.theoretical_bubble:.1%} were all passes equally long'
      )
    return f'{", ".join(parts)}.'


def MakeReport(
  timelines: Sequence[timeline_lib.Timeline], prediction: Prediction
) -> StepReport:
  """Compares.

  Args:
    timelines: of one or more steps of one pipeline.
    prediction: for this pipeline.

  Returns:
    The report, with advice.

  Raises:
    ValueError: without timelines, or where the prediction is for another number
      of partitions.
  """
  typical = timeline_lib.Median(timelines)
  if len(prediction.shares) != typical.num_partitions:
    raise ValueError(
      f'the prediction is for {len(prediction.shares)} partitions, but '
      f'{typical.num_partitions} were recorded'
    )
  passes = np.median([t.pass_seconds for t in timelines], axis=0)
  work = passes.sum(axis=1)
  partitions = tuple(
    PartitionReport(
      device,
      policy,
      *passes[k].tolist(),
      share=float(work[k] / work.sum()),
      predicted_share=prediction.shares[k],
    )
    for k, (device, policy) in enumerate(
      zip(typical.devices, typical.policies, strict=True)
    )
  )
  steps = [t.step_seconds for t in timelines]
  idle = np.median([idle_time.Shares(t) for t in timelines], axis=0)
  waiting, transfer, overhead = idle.tolist()
  report = StepReport(
    heading=timeline_text.Heading(typical),
    num_steps=len(timelines),
    step_seconds=statistics.median(steps),
    shortest_seconds=min(steps),
    longest_seconds=max(steps),
    schedule=typical.schedule,
    num_devices=typical.num_devices,
    num_micro_batches=typical.num_micro_batches,
    partitions=partitions,
    balance=float(work.mean() / work.max()),
    predicted_balance=prediction.balance,
    bubble=statistics.median(t.bubble for t in timelines),
    scheduled_bubble=_ScheduledBubble(typical, passes),
    predicted_bubble=prediction.bubble,
    theoretical_bubble=typical.theoretical_bubble,
    waiting=waiting,
    transfer=transfer,
    overhead=overhead,
    clocks=tuple(timeline_text.ClockText(typical)),
  )
  return dataclasses.replace(
    report, advice=step_advice.Advice(report, prediction)
  )


def _ScheduledBubble(
  timeline: timeline_lib.Timeline, passes: np.ndarray
) -> float | None:
  """The bubble if each pass took its mean time and nothing else took any."""
  if timeline.theoretical_bubble is None:
    return None
  table = schedule.MakeSchedule(
    timeline.schedule,
    timeline.num_partitions,
    timeline.num_micro_batches,
    timeline.num_devices,
  )
  forward, recompute, backward = passes.T.tolist()
  step = schedule.StepTime(table, forward, backward, recompute)
  busy = timeline.num_micro_batches * float(passes.sum())
  return 1 - busy / (timeline.num_devices * step)
