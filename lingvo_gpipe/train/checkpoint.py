"""Saving and restoring: complete or not there, readable with any partitions.

Files are those of tf.train.Checkpoint. They are written into a temporary
directory and renamed, the one that makes the checkpoint complete last
(checkpoint_files.py), so that a crash at any moment leaves the checkpoints
before as they were.

Variables are saved by their paths in the model, which do not depend on
partitions: what was written with K=4 restores with K=1.
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe.train import (
  best_checkpoint,
  checkpoint_files,
  checkpoint_integrity,
  checkpoint_mismatch,
  error_reason,
  summaries,
  value_files,
)

CheckpointError = checkpoint_files.CheckpointError
CorruptError = checkpoint_files.CorruptError
MismatchError = checkpoint_files.MismatchError

# Raised where a worker is lost; they are not about files and pass as they are.
_WORKER_ERRORS = (
  tf.errors.AbortedError,
  tf.errors.CancelledError,
  tf.errors.DeadlineExceededError,
  tf.errors.UnavailableError,
)

_TEMPORARY = '.tmp-'


def CheckWritable(directory: str) -> None:
  """Makes the directory and a file in it, and removes the file.

  Args:
    directory: where checkpoints or logs are to be written.

  Raises:
    CheckpointError: where that fails, before any long work.
  """
  try:
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory) as f:
      f.write(b'0')
      f.flush()
  except OSError as e:
    raise CheckpointError(
      f'cannot write to the directory {directory}: {e.strerror}; choose '
      'another one (--logdir), or make it writable'
    ) from e


class Checkpointer:
  """Saves and restores a set of variables.

  Any number of processes may restore from a directory; one may save.
  """

  def __init__(
    self,
    directory: str,
    variables: Mapping[str, tf.Variable],
    *,
    model: str = '',
    max_to_keep: int = 5,
    keep_every_steps: int = 0,
    verify: bool = True,
    io_device: str | None = None,
  ):
    """Nothing is written before the first Save.

    Args:
      directory: of the checkpoints.
      variables: {variable path: variable}.
      model: name of the model, for messages about foreign checkpoints.
      max_to_keep: how many of the newest to keep, besides the best; 0: all.
      keep_every_steps: checkpoints of multiples of it are never deleted; 0:
        none.
      verify: whether Restore compares the files with their checksums first,
        which means reading them twice, the second time from memory if there is
        some.
      io_device: the device that does the reading and writing, such as
        '/job:localhost/replica:0/task:0/device:CPU:0', to which all values then
        travel. None: each worker for its own variables, into `directory`, which
        workers must share.

    Raises:
      ValueError: where a variable has two names.
    """
    names: dict[Any, str] = {}
    for name, variable in variables.items():
      other = names.setdefault(variable.ref(), name)
      if other != name:
        raise ValueError(
          f'{other!r} and {name!r} are the same variable; give it one name'
        )
    self.directory = directory
    self._variables = dict(variables)
    self._model = model
    self._max_to_keep = max_to_keep
    self._keep_every_steps = keep_every_steps
    self._verify = verify
    self._io_device = io_device
    self._files = value_files.ValueFiles(self._variables, io_device)
    self._snapshot: value_files.Snapshot | None = None

  def Latest(self) -> str | None:
    """The prefix of the newest complete checkpoint; None if there is none."""
    return checkpoint_files.Latest(self.directory)

  # Saving.

  def Save(self, step: int, metadata: Mapping[str, Any] | None = None) -> str:
    """Saves the variables as the checkpoint of a step.

    An earlier checkpoint of the same step is replaced.

    Args:
      step: global step.
      metadata: what JSON can hold, such as the input position.

    Returns:
      The checkpoint's prefix.

    Raises:
      CheckpointError: where files cannot be written, for example because the
        disk is full. Earlier checkpoints stay.
    """
    self._AwaitAssignments()
    return self._SaveValues(self._files, step, metadata)

  def TakeSnapshot(self) -> None:
    """Keeps the present values, to be written while the variables change.

    In place of those of before, if they are still there; see
    value_files.Snapshot.
    """
    self._AwaitAssignments()
    if self._snapshot is None:
      self._snapshot = value_files.Snapshot(self._variables, self._io_device)
    self._snapshot.Take()

  def SaveSnapshot(
    self, step: int, metadata: Mapping[str, Any] | None = None
  ) -> str:
    """Saves the snapshot as Save does; in any thread, but in one at a time.

    Args:
      step: see Save.
      metadata: see Save.

    Returns:
      The checkpoint's prefix.

    Raises:
      CheckpointError: see Save.
    """
    return self._SaveValues(self._snapshot, step, metadata)

  def DropSnapshot(self) -> None:
    """Frees the memory of the snapshot, if there is one."""
    if self._snapshot is not None:
      self._snapshot.Drop()

  def _SaveValues(
    self,
    values: value_files.ValueFiles | value_files.Snapshot,
    step: int,
    metadata: Mapping[str, Any] | None,
  ) -> str:
    prefix = checkpoint_files.Prefix(self.directory, int(step))
    name = os.path.basename(prefix)
    temporary = os.path.join(self.directory, f'{_TEMPORARY}{name}')
    try:
      os.makedirs(self.directory, exist_ok=True)
      self._RemoveRemains(int(step))
      os.mkdir(temporary)
      try:
        values.Write(os.path.join(temporary, name))
        self._Complete(temporary, name, int(step), metadata or {})
        _Publish(temporary, prefix)
      except Exception:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    except _WORKER_ERRORS:
      raise
    except (OSError, tf.errors.OpError) as e:
      raise CheckpointError(
        f'cannot save the checkpoint {prefix}: {error_reason.Reason(e)}; '
        f'the newest complete one is {self.Latest() or "none"}'
      ) from e
    self._DeleteOld()
    return prefix

  def _Complete(
    self, directory: str, name: str, step: int, metadata: Mapping[str, Any]
  ) -> None:
    """Adds the JSON file to a directory with the values of a checkpoint."""
    files, checksums = {}, {}
    for file in sorted(os.listdir(directory)):
      path = os.path.join(directory, file)
      _Sync(path)
      files[file] = os.path.getsize(path)
      checksums[file] = checkpoint_integrity.Checksum(path)
    info = summaries.Plain(
      {
        'format_version': checkpoint_integrity.FORMAT_VERSION,
        'model': self._model,
        'global_step': step,
        'tensorflow_version': tf.__version__,
        'saved_at': datetime.datetime.now(datetime.UTC).isoformat(),
        'files': files,
        'checksums': checksums,
        'metadata': metadata,
      }
    )
    summaries.WriteJson(
      os.path.join(directory, f'{name}.json'),
      checkpoint_integrity.WithChecksum(info),
    )

  def _RemoveRemains(self, step: int) -> None:
    """Removes what killed processes left of saving and deleting before step."""
    complete = checkpoint_files.Checkpoints(self.directory)
    for file in os.listdir(self.directory):
      path = os.path.join(self.directory, file)
      if file.startswith(f'{_TEMPORARY}ckpt-'):
        shutil.rmtree(path)
        continue
      other = checkpoint_files.StepOf(file)
      if other is not None and other < step:
        if checkpoint_files.PrefixOf(path) not in complete:
          os.unlink(path)

  def _DeleteOld(self) -> None:
    if self._max_to_keep <= 0:
      return
    best = self.Best()
    complete = checkpoint_files.Checkpoints(self.directory)
    for prefix in complete[: -self._max_to_keep]:
      if prefix != best and not self._IsKept(prefix):
        try:
          checkpoint_files.Delete(prefix)
        except OSError as e:
          logging.warning('cannot delete the old checkpoint %s: %s', prefix, e)

  def _IsKept(self, prefix: str) -> bool:
    """Whether a checkpoint is one of every so many steps."""
    every = self._keep_every_steps
    return bool(every) and checkpoint_files.StepOf(prefix) % every == 0

  # The best one.

  def RecordMetric(
    self,
    step: int,
    value: float,
    higher_is_better: bool = True,
    metric: str = '',
  ) -> bool:
    """Notes a checkpoint's metric; the best checkpoint is never deleted.

    Args:
      step: of the checkpoint.
      value: of the metric. NaN is never the best.
      higher_is_better: False for losses.
      metric: its name. What was recorded of another one does not count.

    Returns:
      Whether it is the best so far.
    """
    criterion = best_checkpoint.Criterion(metric, higher_is_better)
    return best_checkpoint.Record(
      self.directory, int(step), float(value), criterion
    )

  def Best(self) -> str | None:
    """The prefix of the checkpoint with the best metric recorded, or None."""
    return best_checkpoint.Prefix(self.directory)

  # Restoring.

  def Restore(
    self, path: str | None = None, *, ignore_unused: bool = False
  ) -> dict[str, Any] | None:
    """Sets the variables to a checkpoint's values.

    Args:
      path: its prefix, or one of its files. None: the newest of the directory.
      ignore_unused: whether the checkpoint may have variables that are not
        among ours, such as an optimizer's slots in evaluation.

    Returns:
      The metadata given to Save, and 'global_step'; None if the directory has
      no checkpoint.

    Raises:
      MismatchError: where names, shapes or dtypes of variables differ. No
        variable has changed.
      CorruptError: where a file is damaged; names a good checkpoint if there is
        one. No variable has changed, if files are verified.
      CheckpointError: where it is not complete, or of a later format.
    """
    path = path or self.Latest()
    if path is None:
      return None
    prefix = checkpoint_files.PrefixOf(path)
    info = checkpoint_integrity.ReadInfo(prefix)
    if self._verify:
      checkpoint_integrity.CheckContents(prefix)
    else:
      checkpoint_integrity.CheckSizes(prefix)
    checkpoint_mismatch.Check(
      prefix,
      info['model'],
      self._variables,
      model=self._model,
      ignore_unused=ignore_unused,
    )
    self._AwaitAssignments()
    with checkpoint_integrity.Explained(prefix):
      self._files.Read(prefix)
    return {**info['metadata'], 'global_step': info['global_step']}

  def _AwaitAssignments(self) -> None:
    """Waits for assignments that are still on their way to remote workers.

    Those run in the background there, and one that was made before restoring
    could come after it. A worker handles what it is sent in order.
    """
    last = {v.device: v for v in self._variables.values()}
    for variable in last.values():
      variable.is_initialized().numpy()


def _Publish(temporary: str, prefix: str) -> None:
  """Moves a checkpoint's files from a temporary directory to their place."""
  directory, name = os.path.split(prefix)
  _Sync(temporary)
  checkpoint_files.Delete(prefix)
  # Reversed: the JSON file last, once the others are safe.
  for path in reversed(checkpoint_files.Files(os.path.join(temporary, name))):
    if path.endswith('.json'):
      _Sync(directory)
    os.replace(path, os.path.join(directory, os.path.basename(path)))
  _Sync(directory)
  os.rmdir(temporary)


def _Sync(path: str) -> None:
  """Waits until a file, or the names in a directory, are on the disk."""
  descriptor = os.open(path or '.', os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
