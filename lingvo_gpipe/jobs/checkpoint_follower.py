"""Follows a run: which checkpoints are worked on, and restoring them."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_jobs,
  checkpoint_watch,
  flags,
  graceful_stop,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity

# What each job does with checkpoints.
_VERBS = {'evaler': 'evaluate', 'decoder': 'decode'}


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
      checkpoint_integrity.CheckSizes(checkpoint_files.PrefixOf(o.checkpoint))
  if (o.once or o.all) and not checkpoint_files.Latest(logdir.train_dir):
    verbs = ' and '.join(_VERBS[job] for job in options.jobs)
    raise user_error.UserError(
      f'{logdir.train_dir} holds no checkpoint to {verbs}; train first, or '
      'give the --logdir of a run'
    )


class CheckpointFollower:
  """Gives the checkpoints of a run to the jobs of this process.

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
    self._train_dir = prepared.logdir.train_dir
    self._jobs = checkpoint_jobs.CheckpointJobs(options, stop, prepared)

  def Run(self) -> int:
    """Does what the flags say; returns the exit status.

    Raises:
      UserError: for a checkpoint that is of another model or damaged.
      TrainingError: where no new checkpoint comes.
    """
    with user_error.Expected(checkpoint_files.CheckpointError):
      for found in self._Checkpoints():
        # Once for all jobs.
        restore = functools.cache(functools.partial(self._Restore, found))
        self._jobs.Work(found, restore)
    if self._stop.requested:
      return self._Stopped()
    if self._jobs.last is None:
      raise user_error.TrainingError(
        f'all checkpoints were deleted before they could be {self._jobs.done}; '
        'raise train.save_max_to_keep (--saver_max_to_keep) of the run'
      )
    self._jobs.ShowResults()
    return 0

  def _Checkpoints(self) -> Iterator[checkpoint_watch.Found]:
    """What is to be worked on; nothing after a wish to stop."""
    if self._options.checkpoint:
      prefixes = [checkpoint_files.PrefixOf(self._options.checkpoint)]
    elif self._options.all:
      prefixes = checkpoint_files.Checkpoints(self._train_dir)
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
      self._train_dir,
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
      if self._jobs.last != tried:
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

  def _Stopped(self) -> int:
    last, done = self._jobs.last, self._jobs.done
    progress.Show(
      f'stopped by {self._stop.signal_name}; '
      f'{f"step {last.step}" if last else "nothing"} is {done}; the same '
      'command goes on from there'
    )
    return self._stop.exit_status


def _ShowDeleted(prefix: str) -> None:
  progress.Show(f'{prefix} has been deleted meanwhile; taking the next one')
