"""Evaluations of a run: which datasets, what is printed, where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lingvo_gpipe import log_lines
from lingvo_gpipe.jobs import (
  eval_program,
  predictions,
  progress,
  tolerant_writing,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import summaries


class Evaluation:
  """Evaluates the datasets of a model at steps of a run.

  Args:
    task: a BaseTask with variables.
    inputs: {dataset: input generator}; 'train' is left out.
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
    start_step: int = 0,
    interrupted: Callable[[], bool],
  ):
    self._programs = {
      name: eval_program.EvalProgram(task, generator, name)
      for name, generator in inputs.items()
      if name != 'train'
    }
    self._logdir = logdir
    self._start_step = start_step
    self._interrupted = interrupted
    self._writers: dict[str, summaries.SummaryWriter] = {}
    self._writing = tolerant_writing.TolerantWriting(progress.Show)
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

  def Find(self, dataset: str, step: int) -> eval_program.EvalResult | None:
    """What Run has found out; None where it was not called for that step."""
    return self._results.get((dataset, step))

  def Compute(
    self, dataset: str, writer: predictions.Writer | None = None
  ) -> eval_program.EvalResult | None:
    """Evaluates with the variables as they are; keeps nothing.

    Args:
      dataset: one of `datasets`.
      writer: writes predictions; None: there are none.

    Returns:
      The result; None where it was interrupted.
    """
    return self._programs[dataset].Run(self._interrupted, writer)

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
    done = self.Find(dataset, step)
    if done is not None and writer is None:
      return done
    result = self.Compute(dataset, writer)
    if result is not None and done is None:
      self._results[dataset, step] = result
      with self._writing(f'summaries of the {dataset} data'):
        self._Writer(dataset).Scalars(step, result.metrics)
        self._Writer(dataset).Flush()
    return result

  def RunAll(self, step: int, path: str) -> dict[str, dict[str, float]] | None:
    """Evaluates all datasets.

    Args:
      step: the step the variables are of.
      path: of a file for predictions; '': there are none.

    Returns:
      {dataset: {metric: mean}}; None where it was interrupted.
    """
    metrics = {}
    with predictions.Open(path) as writer:
      for dataset in self.datasets:
        result = self.Run(dataset, step, writer)
        if result is None:
          return None
        metrics[dataset] = result.metrics
      if writer is not None:
        writer.Publish()
        progress.Show(f'predictions of step {step}: {writer.path}')
    return metrics

  def _Writer(self, dataset: str) -> summaries.SummaryWriter:
    if dataset not in self._writers:
      self._writers[dataset] = summaries.SummaryWriter(
        self._logdir.EvalDir(dataset), self._start_step
      )
    return self._writers[dataset]


def StepLine(
  step: int, dataset: str, result: eval_program.EvalResult
) -> log_lines.Line:
  """`step 20 dev loss 0.3412 accuracy 0.8911 812 examples/s`."""
  rate = progress.Rate(result.examples_per_second)
  values = progress.Values(result.metrics)
  return log_lines.Line(
    f'step {step} {dataset} {values} {rate} examples/s',
    {
      **result.metrics,
      'step': step,
      'dataset': dataset,
      'examples_per_second': result.examples_per_second,
    },
  )


def ResultLines(
  dataset: str, metrics: Mapping[str, float]
) -> list[log_lines.Line]:
  """A line for each metric, the accuracy last: `test accuracy: 0.9917`.

  Args:
    dataset: such as 'test'.
    metrics: {name: mean}.

  Returns:
    The lines.
  """
  names = sorted(metrics, key=lambda n: (n == 'accuracy', n != 'loss', n))
  return [
    log_lines.Line(
      f'{dataset} {name}: {metrics[name]:.4f}',
      {name: metrics[name], 'dataset': dataset},
    )
    for name in names
  ]
