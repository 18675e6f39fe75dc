"""The mean of the weights of several checkpoints of a run.

Vaswani et al. (arXiv 1706.03762), section 6.1, average the last checkpoints of
a translation model, which is better than each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity


def Restore(
  prefixes: Sequence[str], variables: Mapping[str, tf.Variable]
) -> None:
  """Sets variables to their means over checkpoints.

  Integers are those of the last one. One variable is read at a time, so that
  little memory is taken.

  Args:
    prefixes: of the checkpoints, one or more, the newest last.
    variables: {name in checkpoints: variable}; others there are left out.

  Raises:
    MismatchError: where a checkpoint has no such variable, or one of another
      shape or dtype. No variable has changed.
    CorruptError: where a file is damaged. Some variables may have changed.
  """
  for prefix in prefixes:
    checkpoint_integrity.CheckSizes(prefix)
    _CheckVariables(prefix, variables)
  readers = []
  for prefix in prefixes:
    with checkpoint_integrity.Explained(prefix):
      readers.append(tf.train.load_checkpoint(prefix))
  for name, variable in variables.items():
    key = checkpoint_integrity.Key(name)
    if not variable.dtype.is_floating:
      with checkpoint_integrity.Explained(prefixes[-1]):
        variable.assign(readers[-1].get_tensor(key))
      continue
    total = np.zeros(variable.shape, np.float64)
    for prefix, reader in zip(prefixes, readers, strict=True):
      with checkpoint_integrity.Explained(prefix):
        total += reader.get_tensor(key)
    variable.assign(tf.cast(total / len(prefixes), variable.dtype))


def _CheckVariables(prefix: str, variables: Mapping[str, tf.Variable]) -> None:
  there = checkpoint_integrity.ReadVariables(prefix)
  for name, variable in variables.items():
    expected = tuple(variable.shape), variable.dtype
    if there.get(name) != expected:
      found = 'is missing'
      if name in there:
        shape, dtype = there[name]
        found = f'is {dtype.name} {list(shape)}'
      raise checkpoint_files.MismatchError(
        f'checkpoint {prefix} is of another model: {name} {found}, but here it '
        f'is {variable.dtype.name} {list(variable.shape)}'
      )
