"""After the first steps: what partitions took, beside what was predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lingvo_gpipe.gpipe.timelines import (
  step_report,
  timeline,
  timeline_picture,
  timeline_trace,
)
from lingvo_gpipe.jobs import logdir as logdir_lib

# The first step builds the graph, the second still allocates.
_SKIPPED_STEPS = 2
_RECORDED_STEPS = 5


def MakeTimeline(
  net: Any, times: list[Any], model: str = ''
) -> timeline.Timeline:
  """The timeline of a step; waits for the step.

  Args:
    net: a GPipe with a plan.
    times: of BaseTask.TrainStep, see loop_data.LoopResult.
    model: name for headings.

  Returns:
    The Timeline.

  Raises:
    ValueError: where no pass took any time.
  """
  plan = net.plan
  return timeline.FromTimes(
    np.stack([np.asarray(t) for t in times]),
    devices=plan.devices,
    schedule=plan.schedule,
    policies=[stage.rematerialize for stage in plan.stages],
    model=model,
  )


class StepTiming:
  """Records some steps, then writes about them, once.

  Args:
    net: a GPipe with a plan.
    model: name for the picture.
    logdir: gets timeline.json and step_report.json; with `pictures` also
      timeline.png and timeline_trace.json.
    pictures: whether to draw.
    show: prints a line.
  """

  def __init__(
    self,
    net: Any,
    *,
    model: str,
    logdir: logdir_lib.LogDir,
    pictures: bool,
    show: Callable[[str], None] = print,
  ):
    self._net = net
    self._model = model
    self._logdir = logdir
    self._pictures = pictures
    self._show = show
    self._seen = 0
    self._timelines: list[timeline.Timeline] = []

  def Add(self, times: list[Any]) -> None:
    """Takes the `times` of BaseTask.TrainStep; reports when it has enough."""
    self._seen += 1
    recorded = self._seen - _SKIPPED_STEPS
    if not 0 < recorded <= _RECORDED_STEPS:
      return
    self._timelines.append(MakeTimeline(self._net, times, self._model))
    if recorded == _RECORDED_STEPS:
      self._Write()

  def _Write(self) -> None:
    report = step_report.MakeReport(
      self._timelines,
      step_report.FromPlan(self._net.plan, self._net.cell_times),
    )
    self._show(report.ToText())
    self._logdir.WriteJson('step_report.json', report.ToJson())
    median = timeline.Median(self._timelines)
    self._logdir.WriteJson('timeline.json', median.ToJson())
    if self._pictures:
      self._logdir.WriteJson(
        'timeline_trace.json', timeline_trace.ToTrace(median)
      )
      path = self._logdir.PathOf('timeline.png')
      timeline_picture.WritePng(median, path)
      self._show(f'timeline of a step in {path}')
