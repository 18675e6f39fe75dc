"""Evaluation: one pass over a dataset, metrics exact over partial batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import cluster, nested_map


@dataclasses.dataclass(frozen=True)
class EvalResult:
  """What one pass gave.

  Attributes:
    metrics: name and mean, over all examples (or tokens) together.
    num_batches: evaluated.
  """

  metrics: dict[str, float]
  num_batches: int


class EvalProgram:
  """Evaluates a task on one dataset, as often as wanted.

  Args:
    task: a BaseTask with variables.
    input_generator: gives one pass over the data.
    name: of the dataset, such as 'test'.
  """

  def __init__(self, task: Any, input_generator: Any, name: str):
    self.name = name
    self._input = input_generator
    self._step = tf.function(
      cluster.ReturnToClient(task.EvalStep), autograph=False
    )

  def Run(
    self, interrupted: Callable[[], bool] = lambda: False
  ) -> EvalResult | None:
    """Evaluates with the variables as they are.

    Args:
      interrupted: asked before every batch; True gives up.

    Returns:
      The result; None where it was interrupted.

    Raises:
      ValueError: where there is no data, or none with any weight.
    """
    totals: dict[str, float] = {}
    weights: dict[str, float] = {}
    num_batches = 0
    with tf.device(cluster.INPUT_DEVICE):
      dataset = self._input.Dataset(0).prefetch(2)
    for batch in dataset:
      if interrupted():
        return None
      for name, value in self._step(nested_map.NestedMap(batch)).items():
        totals[name] = totals.get(name, 0.0) + float(value.total)
        weights[name] = weights.get(name, 0.0) + float(value.weight)
      num_batches += 1
    if not num_batches or not any(weights.values()):
      raise ValueError(
        f'the {self.name} data gave {num_batches} batches and no example with '
        'any weight: there is nothing to evaluate; check its input params'
      )
    return EvalResult(
      {
        name: total / weights[name]
        for name, total in totals.items()
        if weights[name]
      },
      num_batches,
    )
