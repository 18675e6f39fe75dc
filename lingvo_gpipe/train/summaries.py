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

# What tf.summary.scalar adds. That function is not used because it needs the
# package tensorboard, which only those who look at the curves have to have.
_SCALAR = tf.compat.v1.SummaryMetadata(
  plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name='scalars'),
  data_class='DATA_CLASS_SCALAR',
)


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
    self._writer = tf.summary.create_file_writer(
      directory, filename_suffix=suffix
    )

  def Scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Writes scalars.

    Args:
      step: the step they belong to.
      values: {name: number or scalar tensor}; '/' in names makes groups.
    """
    with self._writer.as_default(step=int(step)):
      for name, value in values.items():
        tf.summary.write(name, tf.cast(value, tf.float32), metadata=_SCALAR)

  def Flush(self) -> None:
    """Puts everything into the file, for TensorBoard to see."""
    self._writer.flush()

  def Close(self) -> None:
    """Flushes and closes the file."""
    self._writer.close()


def _DropStepsAfter(path: str, last_step: int) -> None:
  """Removes the events of steps after `last_step` from an event file.

  An incomplete record at the end, of a process that was killed, goes too.
  """
  kept, num_dropped = [], 0
  try:
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
      if tf.compat.v1.Event.FromString(record).step > last_step:
        num_dropped += 1
      else:
        kept.append(record)
  except tf.errors.DataLossError:
    num_dropped += 1
  if not num_dropped:
    return
  logging.info(
    '%s: removing %d events after step %d', path, num_dropped, last_step
  )
  temporary = f'{path}.tmp'
  with tf.io.TFRecordWriter(temporary) as writer:
    for record in kept:
      writer.write(record)
  os.replace(temporary, path)


def WriteJson(path: str, values: Mapping[str, Any]) -> None:
  """Writes a JSON file, all or nothing: readers see the old or the new one.

  Args:
    path: of the file; its directory exists.
    values: of what JSON has, and numbers of NumPy and TensorFlow. Numbers that
      are not finite, which JSON lacks, are written as null.

  Raises:
    TypeError: for a value that JSON cannot hold; the file stays as it was.
  """
  text = json.dumps(_Plain(values), indent=2, allow_nan=False) + '\n'
  with atomic_file.Writing(path) as f:
    f.write(text)


def AppendJson(path: str, values: Mapping[str, Any]) -> None:
  """Adds a line to a file of JSON lines, such as results by step.

  Args:
    path: of the file; made where it is missing. Its directory exists.
    values: as of WriteJson.
  """
  line = json.dumps(_Plain(values), allow_nan=False) + '\n'
  # One write to a file opened for appending: lines of several processes do not
  # mix.
  descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
  try:
    os.write(descriptor, line.encode())
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _Plain(value: Any) -> Any:
  """Turns tensors and arrays into numbers and lists, NaN into None."""
  if isinstance(value, Mapping):
    return {key: _Plain(v) for key, v in value.items()}
  if isinstance(value, list | tuple):
    return [_Plain(v) for v in value]
  if hasattr(value, 'numpy'):
    value = value.numpy()
  if hasattr(value, 'tolist'):
    return _Plain(value.tolist())
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value
