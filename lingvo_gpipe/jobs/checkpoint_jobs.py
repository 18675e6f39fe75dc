"""The evaler and the decoder of one process, as far as --job names them.

  --job=evaler,decoder   a CheckpointFollower gives them the checkpoints that
                         another process, the trainer, writes
  --job=trainer,evaler   the trainer gives them its own, between two steps

Each has its own record of what it has done, whatever is done in one process.
"""

from __future__ import annotations

from collections.abc import Callable

from lingvo_gpipe.jobs import (
  checkpoint_job,
  checkpoint_watch,
  decoder_job,
  evaler_job,
  evaluation,
  flags,
  graceful_stop,
  prepared_model,
)
from lingvo_gpipe.train import checkpoint_files


class CheckpointJobs:
  """Works on checkpoints one after the other, first as evaler.

  Args:
    options: the flags.
    stop: a wish to stop.
    prepared: the model.
    trainers: the evaluations of a trainer in this process; None: there is none.

  Attributes:
    last: the last checkpoint that all of them are done with; None: none yet.
  """

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
    trainers: evaluation.Evaluation | None = None,
  ):
    self._jobs: dict[str, checkpoint_job.CheckpointJob] = {}
    if 'evaler' in options.jobs:
      self._jobs['evaler'] = evaler_job.Evaler(
        options, stop, prepared, trainers
      )
    if 'decoder' in options.jobs:
      self._jobs['decoder'] = decoder_job.Decoder(options, stop, prepared)
    self._train_dir = prepared.logdir.train_dir
    self._metrics: dict[str, checkpoint_job.Metrics] = {}
    self.last: checkpoint_watch.Found | None = None

  def __len__(self) -> int:
    return len(self._jobs)

  @property
  def done(self) -> str:
    """As in "nothing is evaluated and decoded"."""
    return ' and '.join(job.DONE for job in self._jobs.values())

  def Work(
    self, found: checkpoint_watch.Found, restore: Callable[[], bool]
  ) -> bool:
    """Does what each of them has not done yet with a checkpoint.

    Args:
      found: the checkpoint.
      restore: see CheckpointJob.Work; may be called by each of them.

    Returns:
      Whether all is done; not where it was deleted, or the work interrupted.
    """
    metrics = {}
    for name, job in self._jobs.items():
      done = job.Work(found, restore)
      if done is None:
        return False
      metrics[name] = done
    self.last, self._metrics = found, metrics
    return True

  def WorkOnStep(self, step: int) -> bool:
    """Does so with a checkpoint of whose step the variables are.

    Args:
      step: of the run; nothing is done where it has no checkpoint.

    Returns:
      Whether nothing is left to do; False where it was interrupted.
    """
    found = checkpoint_watch.Look(
      checkpoint_files.Prefix(self._train_dir, step)
    )
    if found is None or found == self.last:
      return True
    return self.Work(found, restore=lambda: True)

  def Metrics(self, job: str, step: int) -> checkpoint_job.Metrics:
    """What came out at a step.

    Args:
      job: 'evaler' or 'decoder'.
      step: of the run.

    Returns:
      {dataset: {metric: mean}}; empty where there is no such job, or all is not
      done with the checkpoint of that step.
    """
    if self.last is None or self.last.step != step:
      return {}
    return dict(self._metrics.get(job, {}))

  def ShowResults(self) -> None:
    """Prints the metrics of the last checkpoint."""
    for metrics in self._metrics.values():
      prepared_model.ShowResults(metrics)
