"""--job=evaler: evaluates the checkpoints that a trainer writes.

It may run while the trainer does, as a process of its own with devices of its
own. Of the trainer's files it writes none: what it has done stands in
eval_<dataset>/evaluated.jsonl, its summaries in files with a suffix of their
own. Only results.json is that of whoever evaluated the latest step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_watch,
  eval_history,
  eval_program,
  evaluation,
  flags,
  graceful_stop,
  predictions,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import checkpoint_files, summaries

_SUFFIX = '.evaler'

# {dataset: {metric: mean}} of a checkpoint.
_Metrics = dict[str, dict[str, float]]


def CheckThereIsWork(options: flags.Options, logdir: logdir_lib.LogDir) -> None:
  """Checks what the flags name, before anything long.

  Args:
    options: the flags.
    logdir: of the run.

  Raises:
    UserError: where there is no checkpoint to evaluate, though it need not be
      waited for.
  """
  o = options.evaluation
  with user_error.Expected(
    checkpoint_files.CheckpointError, prefix=f'--checkpoint={o.checkpoint}: '
  ):
    if o.checkpoint:
      checkpoint_files.CheckSizes(checkpoint_files.PrefixOf(o.checkpoint))
  if (o.once or o.all) and not checkpoint_files.Latest(logdir.train_dir):
    raise user_error.UserError(
      f'{logdir.train_dir} holds no checkpoint to evaluate; train first, or '
      'give the --logdir of a run'
    )


class Evaler:
  """Evaluates checkpoints one after the other.

  Args:
    options: the flags.
    stop: a wish to stop.
    prepared: the model.
  """

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
  ):
    self._options = options.evaluation
    self._max_steps = options.max_steps
    self._stop = stop
    self._prepared = prepared
    self._logdir = prepared.logdir
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
    path = self._options.predictions
    with user_error.Expected(ValueError, prefix=f'--predictions={path}: '):
      for program in self._programs.values() if path else ():
        program.CheckPredictions()
    self._histories = {
      name: eval_history.EvalHistory(
        os.path.join(self._logdir.EvalDir(name), 'evaluated.jsonl')
      )
      for name in self._programs
    }
    self._writers: dict[str, summaries.SummaryWriter] = {}
    self._last: tuple[checkpoint_watch.Found, _Metrics] | None = None

  def Run(self) -> int:
    """Evaluates what the flags say; returns the exit status.

    Raises:
      UserError: for a checkpoint that is of another model or damaged.
      TrainingError: where no new checkpoint comes.
    """
    with user_error.Expected(checkpoint_files.CheckpointError):
      for found in self._Checkpoints():
        metrics = self._Evaluate(found)
        if metrics is not None:
          self._last = found, metrics
          self._WriteResults(found, metrics)
    if self._stop.requested:
      return self._Stopped()
    if self._last is None:
      raise user_error.TrainingError(
        'all checkpoints were deleted before they could be evaluated; raise '
        'train.save_max_to_keep (--saver_max_to_keep) of the run'
      )
    prepared_model.ShowResults(self._last[1])
    return 0

  def _Checkpoints(self) -> Iterator[checkpoint_watch.Found]:
    """What is to be evaluated; None of it after a wish to stop."""
    if self._options.checkpoint:
      prefixes = [checkpoint_files.PrefixOf(self._options.checkpoint)]
    elif self._options.all:
      prefixes = checkpoint_files.Checkpoints(self._logdir.train_dir)
    else:
      yield from self._Newest()
      return
    for prefix in prefixes:
      if self._stop.requested:
        return
      found = checkpoint_watch.Look(prefix)
      if found is None:
        _ShowDeleted(prefix)
      else:
        yield found

  def _Newest(self) -> Iterator[checkpoint_watch.Found]:
    """The newest one, and again, until that of the last step is evaluated."""
    watch = checkpoint_watch.CheckpointWatch(
      self._logdir.train_dir,
      interrupted=lambda: self._stop.requested,
      timeout=self._options.timeout,
      show=progress.Show,
    )
    tried = None

    def _IsNew(found: checkpoint_watch.Found) -> bool:
      return found != tried

    what = 'the first checkpoint'
    while True:
      tried = watch.Wait(_IsNew, what)
      if tried is None:
        return
      yield tried
      if self._last is None or self._last[0] != tried:
        continue  # It was deleted meanwhile.
      last_step = self._LastStep(tried)
      if self._options.once or tried.step >= last_step:
        return
      what = f'a checkpoint after step {tried.step} of {last_step}'

  def _LastStep(self, found: checkpoint_watch.Found) -> int:
    """The last step of the run, as far as it is known."""
    return (
      self._max_steps
      or found.metadata.get('max_steps')
      or self._prepared.model.params.train.max_steps
    )

  def _Evaluate(self, found: checkpoint_watch.Found) -> _Metrics | None:
    """Evaluates a checkpoint on the datasets on which it was not yet.

    Args:
      found: the checkpoint.

    Returns:
      All its metrics; None where it was deleted, or the evaluation interrupted.
    """
    metrics = self._Known(found)
    missing = [name for name in self._programs if name not in metrics]
    for name, values in metrics.items():
      progress.Show(
        f'step {found.step} {name} {progress.Values(values)}, evaluated before'
      )
    if missing and not self._options.checkpoint:
      self._logdir.Create(*map(self._logdir.EvalDir, missing))
    if missing and not self._Restore(found):
      return None
    with predictions.Open(self._options.predictions) as writer:
      for name in missing:
        result = self._programs[name].Run(lambda: self._stop.requested, writer)
        if result is None:
          return None
        progress.Show(evaluation.StepLine(found.step, name, result))
        metrics[name] = result.metrics
        self._Record(found, name, result.metrics)
      if writer is not None:
        writer.Publish()
        progress.Show(f'predictions of step {found.step}: {writer.path}')
    return {name: metrics[name] for name in self._programs}

  def _Known(self, found: checkpoint_watch.Found) -> _Metrics:
    """What an earlier evaler has found out, and need not be done again."""
    o = self._options
    if o.once or o.checkpoint or o.predictions:
      return {}
    known = {
      name: history.Find(found.step, found.saved_at)
      for name, history in self._histories.items()
    }
    return {name: values for name, values in known.items() if values}

  def _Restore(self, found: checkpoint_watch.Found) -> bool:
    """Sets the variables; False where the checkpoint has been deleted."""
    try:
      self._prepared.checkpointer.Restore(found.prefix)
    except checkpoint_files.CheckpointError:
      if self._options.checkpoint or checkpoint_watch.IsThere(found.prefix):
        raise
      _ShowDeleted(found.prefix)
      return False
    progress.Show(f'restored {found.prefix}')
    return True

  def _Record(
    self, found: checkpoint_watch.Found, dataset: str, metrics: dict[str, float]
  ) -> None:
    """Notes new metrics, also for TensorBoard."""
    history = self._histories[dataset]
    if self._options.checkpoint:
      return
    if history.Find(found.step, found.saved_at) == metrics:
      return
    if dataset not in self._writers:
      self._writers[dataset] = summaries.SummaryWriter(
        self._logdir.EvalDir(dataset), start_step=None, suffix=_SUFFIX
      )
    self._writers[dataset].Scalars(found.step, metrics)
    self._writers[dataset].Flush()
    history.Add(found.step, found.saved_at, metrics)

  def _WriteResults(
    self, found: checkpoint_watch.Found, metrics: _Metrics
  ) -> None:
    results = self._logdir.ReadJson('results.json')
    if self._options.checkpoint:
      return
    if results is None or results['global_step'] <= found.step:
      self._prepared.WriteResults(
        found.step, found.metadata.get('train_seconds', 0.0), metrics
      )

  def _Stopped(self) -> int:
    done = 'nothing is evaluated'
    if self._last is not None:
      done = f'step {self._last[0].step} is evaluated'
    progress.Show(
      f'stopped by {self._stop.signal_name}; {done}; the same command goes on '
      'from there'
    )
    return self._stop.exit_status


def _ShowDeleted(prefix: str) -> None:
  progress.Show(f'{prefix} has been deleted meanwhile; taking the next one')
