"""Damaged checkpoints: refused with a reason, or read as they were written."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe.train import checkpoint, checkpoint_files

_STEPS = (1, 2)


class Checkpoints:
  """The property; a context manager, which holds the good files.

  Called with random numbers it damages the newer of two checkpoints.
  """

  def __enter__(self) -> Checkpoints:
    self._directory = tempfile.TemporaryDirectory()
    self._good = os.path.join(self._directory.name, 'good')
    self._train = os.path.join(self._directory.name, 'train')
    self._variables = {
      'net/a/w': tf.Variable(tf.zeros([3, 4])),
      'net/b/w': tf.Variable(tf.zeros([5], tf.float64)),
      'global_step': tf.Variable(0, dtype=tf.int64),
    }
    saver = checkpoint.Checkpointer(self._good, self._variables, model='m')
    for step in _STEPS:
      self._Set(step)
      saver.Save(step, {'input_position': step})
    self._reader = checkpoint.Checkpointer(
      self._train, self._variables, model='m'
    )
    return self

  def __exit__(self, *unused_exc: Any) -> None:
    self._directory.cleanup()

  def _Set(self, step: int) -> None:
    for variable in self._variables.values():
      variable.assign(tf.cast(tf.fill(variable.shape, step), variable.dtype))

  def _Are(self, step: int) -> bool:
    return all(
      np.array_equal(v.numpy(), np.full(v.shape, step))
      for v in self._variables.values()
    )

  def __call__(self, rng: random.Random) -> None:
    shutil.rmtree(self._train, ignore_errors=True)
    shutil.copytree(self._good, self._train)
    names = [
      name
      for name in sorted(os.listdir(self._train))
      if checkpoint_files.StepOf(name) == _STEPS[-1]
    ]
    what = [
      _DamageFile(rng, os.path.join(self._train, rng.choice(names)))
      for _ in range(rng.randint(1, 2))
    ]
    self._Set(0)
    try:
      metadata = self._reader.Restore()
    except checkpoint.CheckpointError as e:
      if not self._Are(0):
        raise AssertionError(f'{what}: changed in spite of {e}') from e
      if len(str(e)) > 4000 or '\n' in str(e):
        raise AssertionError(f'{what}: not a line: {e}') from e
    else:
      step = metadata['global_step'] if metadata else None
      if step not in _STEPS or not self._Are(step):
        raise AssertionError(f'{what}: read as step {step}, but is not it')
    # The one before is as good as ever.
    good = checkpoint_files.Prefix(self._train, _STEPS[0])
    self._reader.Restore(good)
    if not self._Are(_STEPS[0]):
      raise AssertionError(f'{what}: the checkpoint before is not read')


def _DamageFile(rng: random.Random, path: str) -> str:
  """Damages a file; says how."""
  if not os.path.exists(path):
    return f'{path} is gone'
  with open(path, 'rb') as f:
    content = bytearray(f.read())
  how = rng.choice(['delete', 'truncate', 'flip', 'fill', 'insert', 'empty'])
  at = rng.randrange(len(content) or 1)
  if how == 'delete':
    os.unlink(path)
    return f'{path} deleted'
  if how == 'truncate':
    content = content[:at]
  elif how == 'flip' and content:
    content[at] ^= 1 << rng.randrange(8)
  elif how == 'fill':
    length = rng.randint(1, 64)
    content[at : at + length] = bytes(min(length, len(content) - at))
  elif how == 'insert':
    content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
  else:
    content = bytearray()
  with open(path, 'wb') as f:
    f.write(content)
  return f'{os.path.basename(path)}: {how} at {at}'
