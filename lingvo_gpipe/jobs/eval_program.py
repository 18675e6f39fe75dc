"""Evaluation: one pass over a dataset, metrics exact over partial batches."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import cluster
from lingvo_gpipe.jobs import eval_batches, predictions


@dataclasses.dataclass(frozen=True)
class EvalResult:
  """What one pass gave.

  Attributes:
    metrics: name and mean, over all examples (or tokens) together.
    num_batches: evaluated.
    num_examples: evaluated, without those that only fill up a batch.
    examples_per_second: without the first batch, which may build the graph, as
      far as there are more.
  """

  metrics: dict[str, float]
  num_batches: int
  num_examples: int
  examples_per_second: float


class EvalProgram:
  """Evaluates a task on one dataset, as often as wanted.

  Args:
    task: a BaseTask with variables.
    input_generator: gives one pass over the data.
    name: of the dataset, such as 'test'.
    now: seconds from any start.
  """

  def __init__(
    self,
    task: Any,
    input_generator: Any,
    name: str,
    *,
    now: Callable[[], float] = time.monotonic,
  ):
    self.name = name
    self._input = input_generator
    self._now = now
    self._weights_field = task.net.params.weights_field
    # Two functions: what the last cell says of examples may be large.
    self._step = tf.function(
      cluster.ReturnToClient(task.EvalStep), autograph=False
    )
    self._step_with_outputs = tf.function(
      cluster.ReturnToClient(task.EvalOutputs), autograph=False
    )

  def MetricNames(self) -> list[str]:
    """The names of the metrics; builds the graph that Run uses."""
    step = self._step.get_concrete_function(self._input.BatchSpec())
    return list(step.structured_outputs)

  def CheckPredictions(self) -> None:
    """Checks that Run has predictions to write; builds its graph.

    Raises:
      ValueError: where the last cell gives none.
    """
    spec = self._input.BatchSpec()
    step = self._step_with_outputs.get_concrete_function(spec)
    predictions.Check(step.structured_outputs.outputs, spec)

  def Run(
    self,
    interrupted: Callable[[], bool] = lambda: False,
    writer: predictions.Writer | None = None,
  ) -> EvalResult | None:
    """Evaluates with the variables as they are.

    Args:
      interrupted: asked before every batch; True gives up.
      writer: writes predictions; None: there are none.

    Returns:
      The result; None where it was interrupted.

    Raises:
      ValueError: where there is no data, or none with any weight.
      UserError: for data that cannot be read.
    """
    totals: dict[str, float] = {}
    weights: dict[str, float] = {}
    num_examples, start = [], self._now()
    end = after_first = start
    for batch in eval_batches.Read(self._input):
      if interrupted():
        return None
      is_example = eval_batches.IsExample(batch, self._weights_field)
      if writer is None:
        metrics = self._step(batch)
      else:
        result = self._step_with_outputs(batch)
        metrics = result.metrics
        writer.Add(self.name, batch, result.outputs, is_example)
      for name, value in metrics.items():
        totals[name] = totals.get(name, 0.0) + float(value.total)
        weights[name] = weights.get(name, 0.0) + float(value.weight)
      num_examples.append(int(is_example.sum()))
      end = self._now()
      if len(num_examples) == 1:
        after_first = end
    if not any(weights.values()):
      raise ValueError(
        f'the {self.name} data gave {len(num_examples)} batches and no example '
        'with any weight: there is nothing to evaluate; check its input params'
      )
    skip = int(len(num_examples) > 1)
    seconds = end - (after_first if skip else start)
    return EvalResult(
      {
        name: total / weights[name]
        for name, total in totals.items()
        if weights[name]
      },
      len(num_examples),
      sum(num_examples),
      sum(num_examples[skip:]) / max(seconds, 1e-9),
    )
