"""What evaluations of the dev data during training gave, and when to stop.

  {"step": 200, "loss": 0.3412, "accuracy": 0.8911}

A line for each in <logdir>/train/dev_metrics.jsonl. Whether to stop is a
function of these lines only, so a run that was stopped in between ends at the
same step as an unbroken one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from lingvo_gpipe.jobs import step_log
from lingvo_gpipe.train import best_checkpoint


class Best(NamedTuple):
  """The best evaluation so far.

  Attributes:
    metric: its name.
    step: that it is of; None: no value was finite.
    value: of the metric.
    evals_since: how many came after it.
  """

  metric: str
  step: int | None
  value: float
  evals_since: int


class DevHistory:
  """The evaluations of a run.

  Args:
    path: of the file; its directory exists.
    step: the step the run goes on from; what comes after it is forgotten.
  """

  def __init__(self, path: str, step: int):
    self._log = step_log.StepLog(path, step)
    self._records = step_log.Read(path) if os.path.exists(path) else []

  def Has(self, step: int) -> bool:
    """Whether a step was evaluated."""
    return any(r['step'] == step for r in self._records)

  def Add(self, step: int, metrics: Mapping[str, float]) -> None:
    """Notes an evaluation, unless its step is noted already.

    Args:
      step: evaluated.
      metrics: {name: mean}.

    Raises:
      OSError: where it cannot be written; it is known nevertheless.
    """
    if not self.Has(step):
      record = {'step': step, **metrics}
      self._records.append(record)
      self._log.Append([record])

  def Best(self, best_metric: str | None) -> Best | None:
    """Which evaluation was the best one, and how long ago.

    Args:
      best_metric: see best_checkpoint.FindCriterion.

    Returns:
      The Best; None where nothing is compared.
    """
    if not self._records:
      return None
    names = [name for name in self._records[-1] if name != 'step']
    criterion = best_checkpoint.FindCriterion(best_metric, names)
    if criterion is None:
      return None
    best: dict[str, Any] | None = None
    since = 0
    for record in self._records:
      value = record.get(criterion.metric)
      finite = value is not None and not math.isnan(value)
      if finite and (
        best is None or criterion.IsBetter(value, best[criterion.metric])
      ):
        best, since = record, 0
      else:
        since += 1
    if best is None:
      return Best(criterion.metric, None, math.nan, since)
    return Best(criterion.metric, best['step'], best[criterion.metric], since)
