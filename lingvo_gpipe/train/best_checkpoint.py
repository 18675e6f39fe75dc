"""Which checkpoint of a directory has the best metric: best.json.

  {"step": 400, "metric": "accuracy", "value": 0.9833}

A record whose checkpoint is gone, or which is of another metric, is none.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable
from typing import Any

from lingvo_gpipe.train import checkpoint_files, summaries

_FILE = 'best.json'

# Looked for where params name no metric, the first one first.
_USUAL = ('accuracy', 'loss')


@dataclasses.dataclass(frozen=True)
class Criterion:
  """What makes a checkpoint better than another one.

  Attributes:
    metric: its name.
    higher_is_better: False for losses.
  """

  metric: str
  higher_is_better: bool = True

  def IsBetter(self, value: float, than: float) -> bool:
    """Whether a value is better than another; NaN never is."""
    return value > than if self.higher_is_better else value < than


def FindCriterion(
  best_metric: str | None, metrics: Iterable[str]
) -> Criterion | None:
  """The criterion that a param `best_metric` stands for.

  Args:
    best_metric: name of a metric. Higher is better, unless its name begins with
      'loss', or the text with '-'. '': none. None: the accuracy, or else the
      loss.
    metrics: names of the metrics that there are.

  Returns:
    The criterion, or None.

  Raises:
    ValueError: where there is no such metric.
  """
  names = list(metrics)
  if best_metric is None:
    best_metric = next((name for name in _USUAL if name in names), '')
  if not best_metric:
    return None
  name = best_metric.removeprefix('-')
  if name not in names:
    raise ValueError(
      f'eval.best_metric={best_metric!r} is no metric of the model; use one of '
      f'{", ".join(sorted(names))}, with "-" before it where lower is better'
    )
  lower = best_metric.startswith('-') or name.startswith('loss')
  return Criterion(name, higher_is_better=not lower)


def IsBest(directory: str, value: float, criterion: Criterion) -> bool:
  """Whether a value beats the best one recorded in a directory.

  Args:
    directory: of the checkpoints.
    value: of the metric. NaN is never the best.
    criterion: what is compared.

  Returns:
    Whether it does; also where nothing is recorded.
  """
  best = _Read(directory)
  if math.isnan(value):
    return False
  if best is None or best.get('metric', '') != criterion.metric:
    return True
  return criterion.IsBetter(value, best['value'])


def Record(
  directory: str, step: int, value: float, criterion: Criterion
) -> bool:
  """Notes the metric of a checkpoint, if it is the best so far.

  Args:
    directory: of the checkpoints.
    step: of the checkpoint, which has been saved.
    value: see IsBest.
    criterion: see IsBest.

  Returns:
    Whether it is.
  """
  if not IsBest(directory, value, criterion):
    return False
  summaries.WriteJson(
    os.path.join(directory, _FILE),
    {'step': step, 'metric': criterion.metric, 'value': value},
  )
  return True


def Prefix(directory: str) -> str | None:
  """The prefix of the best checkpoint of a directory; None: none recorded."""
  best = _Read(directory)
  if best is None:
    return None
  return checkpoint_files.Prefix(directory, best['step'])


def _Read(directory: str) -> dict[str, Any] | None:
  """The record of the best checkpoint, if that is still there."""
  try:
    with open(os.path.join(directory, _FILE), encoding='utf-8') as f:
      best = json.load(f)
  except FileNotFoundError:
    return None
  prefix = checkpoint_files.Prefix(directory, best['step'])
  return best if os.path.exists(f'{prefix}.json') else None
