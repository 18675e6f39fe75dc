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
  """

  HISTORY = 'evaluated.jsonl'
  SUFFIX = '.evaler'
  DONE = 'evaluated'

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
  ):
    self._programs = {
      name: eval_program.EvalProgram(prepared.task, generator, name)
      for name, generator in prepared.inputs.items()
      if name != 'train'
    }
    if not self._programs:
      raise user_error.UserError(
        f'model {prepared.model.name} has no dev or test data to evaluate: '
        'define its method Dev or Test'
      )
    super().__init__(options, stop, prepared, list(self._programs))
    path = self._options.predictions
    with user_error.Expected(ValueError, prefix=f'--predictions={path}: '):
      for program in self._programs.values() if path else ():
        program.CheckPredictions()

  def _Folder(self, dataset: str) -> str:
    return self._logdir.EvalDir(dataset)

  def _Process(
    self, found: checkpoint_watch.Found, datasets: Sequence[str]
  ) -> Iterator[tuple[str, eval_program.EvalResult | None]]:
    with predictions.Open(self._options.predictions) as writer:
      for name in datasets:
        yield (
          name,
          self._programs[name].Run(lambda: self._stop.requested, writer),
        )
      if writer is not None:
        writer.Publish()
        progress.Show(f'predictions of step {found.step}: {writer.path}')
