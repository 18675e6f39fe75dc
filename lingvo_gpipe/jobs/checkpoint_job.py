"""Jobs that follow a run: something is done with each of its checkpoints.

They may run while the trainer does, as a process of their own with devices of
its own. Of the trainer's files they write none: what they have done stands in a
file of their own for each dataset, their summaries in files with a suffix of
their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_watch,
  eval_history,
  eval_program,
  evaluation,
  flags,
  graceful_stop,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import checkpoint_files, summaries

# {dataset: {metric: mean}} of a checkpoint.
Metrics = dict[str, dict[str, float]]


# What each job does with checkpoints.
VERBS = {'evaler': 'evaluate', 'decoder': 'decode'}


def CheckThereIsWork(options: flags.Options, logdir: logdir_lib.LogDir) -> None:
  """Checks what the flags name, before anything long.

  Args:
    options: the flags.
    logdir: of the run.

  Raises:
    UserError: where there is no checkpoint to work on, though it need not be
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
      f'{logdir.train_dir} holds no checkpoint to {VERBS[options.job]}; train '
      'first, or '
      'give the --logdir of a run'
    )


class CheckpointJob:
  """Works on checkpoints one after the other.

  Subclasses say what is done: `_Process`, and where that is noted.

  Args:
    options: the flags.
    stop: a wish to stop.
    prepared: the model.
    datasets: names of what is worked on.
  """

  # A file that says which checkpoints are done, in the folder of a dataset.
  HISTORY = ''
  # Of the names of summary files.
  SUFFIX = ''
  RESULTS = 'results.json'
  # As in "nothing is evaluated".
  DONE = ''

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
    datasets: Sequence[str],
  ):
    self._options = options.evaluation
    self._max_steps = options.max_steps
    self._stop = stop
    self._prepared = prepared
    self._logdir = prepared.logdir
    self._datasets = list(datasets)
    self._histories = {
      name: eval_history.EvalHistory(
        os.path.join(self._Folder(name), self.HISTORY)
      )
      for name in datasets
    }
    self._writers: dict[str, summaries.SummaryWriter] = {}
    self._last: tuple[checkpoint_watch.Found, Metrics] | None = None

  def _Folder(self, dataset: str) -> str:
    """Where what is written about a dataset goes."""
    raise NotImplementedError(f'{type(self).__name__}._Folder')

  def _Process(
    self, found: checkpoint_watch.Found, datasets: Sequence[str]
  ) -> Iterable[tuple[str, eval_program.EvalResult | None]]:
    """Works on datasets with the variables of a checkpoint.

    Args:
      found: the checkpoint.
      datasets: names.

    Returns:
      (name, result) of each; None where it was interrupted.
    """
    raise NotImplementedError(f'{type(self).__name__}._Process')

  def Run(self) -> int:
    """Does what the flags say; returns the exit status.

    Raises:
      UserError: for a checkpoint that is of another model or damaged.
      TrainingError: where no new checkpoint comes.
    """
    with user_error.Expected(checkpoint_files.CheckpointError):
      for found in self._Checkpoints():
        metrics = self._Work(found)
        if metrics is not None:
          self._last = found, metrics
          self._WriteResults(found, metrics)
    if self._stop.requested:
      return self._Stopped()
    if self._last is None:
      raise user_error.TrainingError(
        f'all checkpoints were deleted before they could be {self.DONE}; raise '
        'train.save_max_to_keep (--saver_max_to_keep) of the run'
      )
    prepared_model.ShowResults(self._last[1])
    return 0

  def _Checkpoints(self) -> Iterator[checkpoint_watch.Found]:
    """What is to be worked on; nothing after a wish to stop."""
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
    """The newest one, and again, until that of the last step is done."""
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

  def _Work(self, found: checkpoint_watch.Found) -> Metrics | None:
    """Works on the datasets with which it was not yet done.

    Args:
      found: the checkpoint.

    Returns:
      All its metrics; None where it was deleted, or the work interrupted.
    """
    metrics = self._Known(found)
    missing = [name for name in self._datasets if name not in metrics]
    for name, values in metrics.items():
      progress.Show(
        f'step {found.step} {name} {progress.Values(values)}, {self.DONE} '
        'before'
      )
    if missing and not self._options.checkpoint:
      self._logdir.Create(*map(self._Folder, missing))
    if missing and not self._Restore(found):
      return None
    for name, result in self._Process(found, missing) if missing else ():
      if result is None:
        return None
      progress.Show(evaluation.StepLine(found.step, name, result))
      metrics[name] = result.metrics
      self._Record(found, name, result.metrics)
    return {name: metrics[name] for name in self._datasets}

  def _Known(self, found: checkpoint_watch.Found) -> Metrics:
    """What an earlier process has found out, and need not be done again."""
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
        self._Folder(dataset), start_step=None, suffix=self.SUFFIX
      )
    self._writers[dataset].Scalars(found.step, metrics)
    self._writers[dataset].Flush()
    history.Add(found.step, found.saved_at, metrics)

  def _WriteResults(
    self, found: checkpoint_watch.Found, metrics: Metrics
  ) -> None:
    if self._options.checkpoint:
      return
    results = self._logdir.ReadJson(self.RESULTS)
    if results is None or results['global_step'] <= found.step:
      self._prepared.WriteResults(
        found.step,
        found.metadata.get('train_seconds', 0.0),
        metrics,
        self.RESULTS,
      )

  def _Stopped(self) -> int:
    done = f'nothing is {self.DONE}'
    if self._last is not None:
      done = f'step {self._last[0].step} is {self.DONE}'
    progress.Show(
      f'stopped by {self._stop.signal_name}; {done}; the same command goes on '
      'from there'
    )
    return self._stop.exit_status


def _ShowDeleted(prefix: str) -> None:
  progress.Show(f'{prefix} has been deleted meanwhile; taking the next one')
