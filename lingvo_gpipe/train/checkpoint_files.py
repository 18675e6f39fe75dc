"""Directories of checkpoints: what is complete, what it holds, is it good.

  ckpt-00000100.index       names, shapes      } by tf.train.Checkpoint
  ckpt-00000100.data-*      values             }
  ckpt-00000100.json        model, step, sizes of these files, metadata
  best.json                 the step with the best metric, where recorded

The JSON file comes last and goes first: a checkpoint without it is not
complete. A checkpoint is named by its prefix, '<directory>/ckpt-00000100'.

Reading runs no code from the files: JSON and TensorFlow's tensor bundles hold
data only, and each tensor has a checksum.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

FORMAT_VERSION = 1

_NAME_RE = re.compile(r'ckpt-(\d{8,})')

# How tf.train.Checkpoint names the variables of a dict called `variables`.
_KEY_RE = re.compile(r'variables/(.*)/\.ATTRIBUTES/VARIABLE_VALUE')

# What TensorFlow raises for bad files, besides OpError itself. All else, such
# as the loss of a worker, passes as it is.
_FILE_ERRORS = (
  IndexError,
  OSError,
  tf.errors.DataLossError,
  tf.errors.NotFoundError,
  tf.errors.OutOfRangeError,
)


class CheckpointError(Exception):
  """A checkpoint cannot be written or read; the message says what to do."""


class MismatchError(CheckpointError):
  """The checkpoint is of another model."""


class CorruptError(CheckpointError):
  """A file of the checkpoint is damaged."""


class _DamagedFileError(Exception):
  """(path, what is wrong with it); turned into a CorruptError."""


def Prefix(directory: str, step: int) -> str:
  """The prefix of the checkpoint of a step."""
  return os.path.join(directory, f'ckpt-{step:08d}')


def PrefixOf(path: str) -> str:
  """The prefix of the checkpoint that a file is of."""
  directory, name = os.path.split(path)
  return os.path.join(directory, name.split('.')[0])


def StepOf(path: str) -> int | None:
  """The step in the name of a checkpoint or one of its files, else None."""
  match = _NAME_RE.fullmatch(os.path.basename(path).split('.')[0])
  return int(match[1]) if match else None


def Checkpoints(directory: str) -> list[str]:
  """The complete checkpoints of a directory, oldest first."""
  try:
    names = os.listdir(directory)
  except FileNotFoundError:
    return []
  steps = [StepOf(n) for n in names if n.endswith('.json')]
  return [
    Prefix(directory, s) for s in sorted(s for s in steps if s is not None)
  ]


def Latest(directory: str) -> str | None:
  """The newest complete checkpoint of a directory; None if there is none."""
  return (Checkpoints(directory) or [None])[-1]


def Files(prefix: str) -> list[str]:
  """The paths of a checkpoint's files, the JSON file first."""
  directory, name = _Directory(prefix), os.path.basename(prefix)
  files = [f for f in os.listdir(directory) if f.split('.')[0] == name]
  files.sort(key=lambda f: (not f.endswith('.json'), f))
  return [os.path.join(directory, f) for f in files]


def Delete(prefix: str) -> None:
  """Deletes a checkpoint, first what makes it complete."""
  for path in Files(prefix):
    os.unlink(path)


def ReadInfo(prefix: str) -> dict[str, Any]:
  """The JSON file of a checkpoint.

  Args:
    prefix: of the checkpoint.

  Returns:
    A dict of
      format_version: int.
      model: name of the model.
      global_step: int.
      tensorflow_version, saved_at: str.
      files: {file name: size in bytes}.
      metadata: what the caller of Save gave.

  Raises:
    CheckpointError: where it is missing, damaged or of a later format.
  """
  with Explained(prefix):
    return _ReadInfo(prefix)


def ReadVariables(prefix: str) -> dict[str, tuple[tuple[int, ...], tf.DType]]:
  """Names, shapes and dtypes of a checkpoint's variables, without reading them.

  Args:
    prefix: of the checkpoint.

  Returns:
    {variable path: (shape, dtype)}.

  Raises:
    CheckpointError: where its index is damaged.
  """
  with Explained(prefix):
    reader = tf.train.load_checkpoint(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    variables = {}
    for key, shape in reader.get_variable_to_shape_map().items():
      match = _KEY_RE.fullmatch(key)
      if match:
        variables[_Unescaped(match[1])] = (tuple(shape), dtypes[key])
    return variables


def Key(path: str) -> str:
  """What tf.train.load_checkpoint calls the variable of a path."""
  escaped = path.replace('.', '..').replace('/', '.S')
  return f'variables/{escaped}/.ATTRIBUTES/VARIABLE_VALUE'


def CheckSizes(prefix: str) -> None:
  """Checks that all files are there and whole, without reading them.

  Args:
    prefix: of the checkpoint.

  Raises:
    CheckpointError: where one is not.
  """
  with Explained(prefix):
    _CheckSizes(prefix, _ReadInfo(prefix))


def Verify(prefix: str) -> None:
  """Reads all of a checkpoint, one variable at a time, against its checksums.

  Args:
    prefix: of the checkpoint.

  Raises:
    CheckpointError: where anything is wrong with its files.
  """
  with Explained(prefix):
    _Verify(prefix)


def Reason(error: BaseException) -> str:
  """The message of an error, less the names of TensorFlow's functions."""
  return re.sub(r'\{\{[^}]*\}\} |,? ?\[Op:\w+\]', '', str(error)).strip()


@contextlib.contextmanager
def Explained(prefix: str) -> Iterator[None]:
  """Turns errors of bad files into CorruptErrors that offer a good one.

  Args:
    prefix: of the checkpoint that is read in the body.

  Yields:
    Nothing.

  Raises:
    CorruptError: names the file.
  """
  try:
    yield
    return
  except Exception as e:
    if not _IsAboutFiles(e):
      raise
    error = e
  if isinstance(error, _DamagedFileError):
    path, what = error.args
  else:
    path, what = _BadFile(prefix, error), Reason(error)
  good = _NewestGood(prefix)
  advice = 'its directory has no other good one'
  if good is not None:
    advice = (
      f'the newest good one is {good}: to go on from there, move the ones '
      'after it away'
    )
  raise CorruptError(
    f'checkpoint {prefix} is damaged, in {path}: {what}; {advice}'
  ) from error


def _NewestGood(damaged: str) -> str | None:
  """The newest checkpoint beside a damaged one that can be read."""
  for prefix in reversed(Checkpoints(_Directory(damaged))):
    if os.path.basename(prefix) != os.path.basename(damaged):
      try:
        _Verify(prefix)
        return prefix
      except Exception as e:
        if not isinstance(e, CheckpointError) and not _IsAboutFiles(e):
          raise
  return None


def _IsAboutFiles(error: Exception) -> bool:
  return (
    isinstance(error, (_DamagedFileError, *_FILE_ERRORS))
    or type(error) is tf.errors.OpError
  )


def _Verify(prefix: str) -> None:
  _CheckSizes(prefix, _ReadInfo(prefix))
  reader = tf.train.load_checkpoint(prefix)
  for key in reader.get_variable_to_shape_map():
    reader.get_tensor(key)


def _ReadInfo(prefix: str) -> dict[str, Any]:
  path = f'{prefix}.json'
  try:
    with open(path, encoding='utf-8') as f:
      info = json.load(f)
  except FileNotFoundError as e:
    others = map(os.path.basename, Checkpoints(_Directory(prefix)))
    raise CheckpointError(
      f'there is no complete checkpoint {prefix}: {path} is missing; complete '
      f'ones there: {", ".join(others) or "none"}'
    ) from e
  except ValueError as e:
    raise _DamagedFileError(path, f'it is not JSON ({e})') from e
  version = info.get('format_version') if isinstance(info, dict) else None
  if not isinstance(version, int):
    raise _DamagedFileError(path, 'it has no format_version')
  if version > FORMAT_VERSION:
    raise CheckpointError(
      f'checkpoint {prefix} has format {version}, of a later version of this '
      f'program, which reads formats up to {FORMAT_VERSION}; update it'
    )
  missing = {'model', 'global_step', 'files', 'metadata'} - info.keys()
  if missing:
    raise _DamagedFileError(path, f'it has no {", ".join(sorted(missing))}')
  return info


def _CheckSizes(prefix: str, info: Mapping[str, Any]) -> None:
  for file, size in info['files'].items():
    path = os.path.join(_Directory(prefix), os.path.basename(file))
    if not os.path.exists(path):
      raise _DamagedFileError(path, 'it is missing')
    actual = os.path.getsize(path)
    if actual != size:
      raise _DamagedFileError(path, f'it has {actual} bytes instead of {size}')


def _BadFile(prefix: str, error: BaseException) -> str:
  """The file that an error of TensorFlow is about."""
  shard = re.search(r'shard (\d+)', str(error))
  if shard is None:
    return f'{prefix}.index'
  part = f'.data-{int(shard[1]):05d}-of-'
  return next((f for f in Files(prefix) if part in f), prefix)


def _Directory(prefix: str) -> str:
  return os.path.dirname(prefix) or '.'


def _Unescaped(key: str) -> str:
  """Undoes tf.train.Checkpoint's '.' -> '..', '/' -> '.S'."""
  return re.sub(r'\.(.)', lambda m: '/' if m[1] == 'S' else m[1], key)
