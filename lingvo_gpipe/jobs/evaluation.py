"""Evaluations of a run: which datasets, what is printed, where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lingvo_gpipe.jobs import eval_program, predictions, progress
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import summaries


class Evaluation:
  """Evaluates the datasets of a model at steps of a run.

  Args:
    task: a BaseTask with variables.
    inputs: {dataset: input generator}, such as those of 'dev' and 'test'.
    logdir: where summaries go.
    start_step: results of later steps, of an earlier process, are removed.
    interrupted: asked between batches; True gives an evaluation up.
  """

  def __init__(
    self,
    task: Any,
    inputs: Mapping[str, Any],
    *,
    logdir: logdir_lib.LogDir,
    start_step: int,
    interrupted: Callable[[], bool],
  ):
    self._programs = {
      name: eval_program.EvalProgram(task, generator, name)
      for name, generator in inputs.items()
    }
    self._logdir = logdir
    self._start_step = start_step
    self._interrupted = interrupted
    self._writers: dict[str, summaries.SummaryWriter] = {}
    self._results: dict[tuple[str, int], eval_program.EvalResult] = {}

  @property
  def datasets(self) -> list[str]:
    """The names that Run takes."""
    return list(self._programs)

  def MetricNames(self, dataset: str) -> list[str]:
    """The names of the metrics of a dataset; builds the graph of Run."""
    return self._programs[dataset].MetricNames()

  def CheckPredictions(self) -> None:
    """Raises ValueError where there is nothing to predict; see EvalProgram."""
    for program in self._programs.values():
      program.CheckPredictions()

  def Run(
    self,
    dataset: str,
    step: int,
    writer: predictions.Writer | None = None,
  ) -> eval_program.EvalResult | None:
    """Evaluates, unless it was done at this step already.

    Args:
      dataset: one of `datasets`.
      step: the step the variables are of.
      writer: writes predictions, for which it is done again. None: there are
        none.

    Returns:
      The result; None where it was interrupted.
    """
    key = (dataset, step)
    done = self._results.get(key)
    if done is not None and writer is None:
      return done
    result = self._programs[dataset].Run(self._interrupted, writer)
    if result is not None and done is None:
      self._results[key] = result
      self._Writer(dataset).Scalars(step, result.metrics)
      self._Writer(dataset).Flush()
    return result

  def _Writer(self, dataset: str) -> summaries.SummaryWriter:
    if dataset not in self._writers:
      self._writers[dataset] = summaries.SummaryWriter(
        self._logdir.EvalDir(dataset), self._start_step
      )
    return self._writers[dataset]


def StepLine(step: int, dataset: str, result: eval_program.EvalResult) -> str:
  """`step 20 dev loss 0.3412 accuracy 0.8911 812 examples/s`."""
  rate = progress.Rate(result.examples_per_second)
  values = progress.Values(result.metrics)
  return f'step {step} {dataset} {values} {rate} examples/s'


def ResultLines(dataset: str, metrics: Mapping[str, float]) -> list[str]:
  """A line for each metric, the accuracy last: `test accuracy: 0.9917`.

  Args:
    dataset: such as 'test'.
    metrics: {name: mean}.

  Returns:
    The lines.
  """
  names = sorted(metrics, key=lambda n: (n == 'accuracy', n != 'loss', n))
  return [f'{dataset} {name}: {metrics[name]:.4f}' for name in names]
