"""--job=evaler: evaluates the checkpoints that a trainer writes.

What it has done stands in eval_<dataset>/evaluated.jsonl. results.json is that
of whoever evaluated the latest step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_job,
  checkpoint_watch,
  eval_program,
  evaluation,
  flags,
  graceful_stop,
  predictions,
  prepared_model,
  progress,
)


class Evaler(checkpoint_job.CheckpointJob):
  """Evaluates checkpoints one after the other.

  Args:
    options: the flags.
    stop: a wish to stop.
    prepared: the model.
    trainers: the evaluations of a trainer in this process, whose results are
      taken where there are some; None: there is none.
  """

  HISTORY = 'evaluated.jsonl'
  SUFFIX = '.evaler'
  DONE = 'evaluated'

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
    trainers: evaluation.Evaluation | None = None,
  ):
    self._evaluation = trainers or evaluation.Evaluation(
      prepared.task,
      prepared.inputs,
      logdir=prepared.logdir,
      interrupted=lambda: stop.requested,
    )
    if not self._evaluation.datasets:
      raise user_error.UserError(
        f'model {prepared.model.name} has no dev or test data to evaluate: '
        'define its method Dev or Test'
      )
    super().__init__(options, stop, prepared, self._evaluation.datasets)
    path = self._options.predictions
    with user_error.Expected(ValueError, prefix=f'--predictions={path}: '):
      if path:
        self._evaluation.CheckPredictions()

  def _Folder(self, dataset: str) -> str:
    return self._logdir.EvalDir(dataset)

  def _Process(
    self, found: checkpoint_watch.Found, datasets: Sequence[str]
  ) -> Iterator[tuple[str, eval_program.EvalResult | None]]:
    with predictions.Open(self._options.predictions) as writer:
      for name in datasets:
        result = None if writer else self._evaluation.Find(name, found.step)
        if result is None:
          result = self._evaluation.Compute(name, writer)
          if result is not None:
            progress.Show(evaluation.StepLine(found.step, name, result))
        yield name, result
      if writer is not None:
        writer.Publish()
        progress.Show(f'predictions of step {found.step}: {writer.path}')
