"""Jobs that do something with each checkpoint of a run.

They may run while the trainer does, as a process of their own with devices of
its own, or in the trainer between two steps. Of the trainer's files they write
none: what they have done stands in a file of their own for each dataset, their
summaries in files with a suffix of their own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence

from lingvo_gpipe.jobs import (
  checkpoint_watch,
  eval_history,
  eval_program,
  flags,
  graceful_stop,
  prepared_model,
  progress,
  tolerant_writing,
)
from lingvo_gpipe.train import summaries

# {dataset: {metric: mean}} of a checkpoint.
Metrics = dict[str, dict[str, float]]


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
    # Training goes on where results cannot be written.
    self._writing: Callable[[str], contextlib.AbstractContextManager[None]] = (
      tolerant_writing.TolerantWriting(progress.Show)
      if 'trainer' in options.jobs
      else lambda what: contextlib.nullcontext()
    )

  def _Folder(self, dataset: str) -> str:
    """Where what is written about a dataset goes."""
    raise NotImplementedError(f'{type(self).__name__}._Folder')

  def _Process(
    self, found: checkpoint_watch.Found, datasets: Sequence[str]
  ) -> Iterable[tuple[str, eval_program.EvalResult | None]]:
    """Works on datasets with the variables of a checkpoint; shows results.

    Args:
      found: the checkpoint.
      datasets: names.

    Returns:
      (name, result) of each; None where it was interrupted.
    """
    raise NotImplementedError(f'{type(self).__name__}._Process')

  def Work(
    self, found: checkpoint_watch.Found, restore: Callable[[], bool]
  ) -> Metrics | None:
    """Works on the datasets with which it was not yet done.

    Args:
      found: the checkpoint.
      restore: called before anything is computed, to set the variables; False
        where the checkpoint has been deleted.

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
    if missing and not restore():
      return None
    for name, result in self._Process(found, missing) if missing else ():
      if result is None:
        return None
      metrics[name] = result.metrics
      with self._writing(f'what was {self.DONE}'):
        self._Record(found, name, result.metrics)
    metrics = {name: metrics[name] for name in self._datasets}
    with self._writing(self.RESULTS):
      self._WriteResults(found, metrics)
    return metrics

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
