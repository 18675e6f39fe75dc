"""What a run writes for people and scripts: TensorBoard scalars and JSON.

writer = summaries.SummaryWriter(f'{logdir}/train', start_step=1000)
writer.Scalars(1001, {'loss': 0.5, 'learning_rate': 0.1})
summaries.WriteJson(f'{logdir}/result.json', {'test_accuracy': 0.9917})
"""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import atomic_file
from lingvo_gpipe.train import event_file


class SummaryWriter:
  """Writes scalars by step for TensorBoard.

  A run that resumes from a checkpoint repeats the steps after it. So a writer
  that starts at `start_step` first removes from its directory what was written
  for later steps: each step stands there once. One writer per directory and
  suffix.
  """

  def __init__(
    self, directory: str, start_step: int | None = 0, *, suffix: str = '.v2'
  ):
    """Opens the directory, making it where it is missing.

    Args:
      directory: such as '<logdir>/train' or '<logdir>/eval_test'.
      start_step: the step of the checkpoint the run goes on from; None: nothing
        is removed.
      suffix: of the names of files. Files with other ones, of other programs
        that write into the directory at the same time, stay as they are.
    """
    os.makedirs(directory, exist_ok=True)
    pattern = os.path.join(glob.escape(directory), f'*tfevents*{suffix}')
    for path in glob.glob(pattern) if start_step is not None else ():
      _DropStepsAfter(path, start_step)
    self._file = event_file.EventFile(directory, suffix)

  def Scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Writes scalars.

    Args:
      step: the step they belong to.
      values: {name: number or scalar tensor}; '/' in names makes groups.

    Raises:
      OSError: where they cannot be written, because the disk is full for
        example; they are, by the next call that can.
    """
    self._file.Write(int(step), {k: float(v) for k, v in values.items()})

  def Flush(self) -> None:
    """Tries to write what could not be written before; raises as Scalars."""
    self._file.Flush()


def _DropStepsAfter(path: str, last_step: int) -> None:
  """Cuts off the events of steps after `last_step` from an event file.

  The steps of a file ascend. An incomplete record at the end, of a process that
  was killed, goes too. Needs no room on the disk.
  """
  size = 0
  try:
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
      if tf.compat.v1.Event.FromString(record).step > last_step:
        break
      size += event_file.RecordSize(record)
  except tf.errors.DataLossError:
    pass
  dropped = os.path.getsize(path) - size
  if dropped:
    logging.info(
      '%s: removing %d bytes of events after step %d', path, dropped, last_step
    )
    os.truncate(path, size)


def WriteJson(path: str, values: Mapping[str, Any]) -> None:
  """Writes a JSON file, all or nothing: readers see the old or the new one.

  Args:
    path: of the file; its directory exists.
    values: of what JSON has, and numbers of NumPy and TensorFlow. Numbers that
      are not finite, which JSON lacks, are written as null.

  Raises:
    TypeError: for a value that JSON cannot hold; the file stays as it was.
  """
  text = json.dumps(Plain(values), indent=2, allow_nan=False) + '\n'
  with atomic_file.Writing(path) as f:
    f.write(text)


def AppendJson(path: str, values: Mapping[str, Any]) -> None:
  """Adds a line to a file of JSON lines, such as results by step.

  Args:
    path: of the file; made where it is missing. Its directory exists.
    values: as of WriteJson.

  Raises:
    OSError: where it cannot be written; the file then ends as before.
  """
  line = json.dumps(Plain(values), allow_nan=False) + '\n'
  atomic_file.Append(path, line.encode(), sync=True)


def Plain(value: Any) -> Any:
  """What JSON has, of what WriteJson takes.

  Args:
    value: nested values, tensors and arrays among them.

  Returns:
    Numbers and lists for those, None for what is not finite.
  """
  if isinstance(value, Mapping):
    return {key: Plain(v) for key, v in value.items()}
  if isinstance(value, list | tuple):
    return [Plain(v) for v in value]
  if hasattr(value, 'numpy'):
    value = value.numpy()
  if hasattr(value, 'tolist'):
    return Plain(value.tolist())
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value
