"""What a checkpoint holds, and whether it is whole.

The JSON file of a checkpoint (checkpoint_files.py) has a CRC-32 of every other
file and one of itself (since format 2), so that a checkpoint is known to be
whole before any of it is used. Reading runs no code from the files: JSON and
tensor bundles hold data only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe.train import checkpoint_files, error_reason

FORMAT_VERSION = 2

# Since this format there are checksums.
_WITH_CHECKSUMS = 2

# What every JSON file has.
_FIELDS = {'model': str, 'global_step': int, 'files': dict, 'metadata': dict}

_BYTES_AT_ONCE = 1 << 20

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


class _DamagedFileError(Exception):
  """(path, what is wrong with it); turned into a CorruptError."""


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
      checksums: {file name: CRC-32 of its content}; since format 2.
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


def CheckContents(prefix: str) -> None:
  """Checks that all files are those that were written, reading each once.

  Checkpoints of format 1, which have no checksums, are checked by those that
  TensorFlow has of each variable.

  Args:
    prefix: of the checkpoint.

  Raises:
    CheckpointError: where one is not.
  """
  with Explained(prefix):
    _CheckContents(prefix)


def Checksum(path: str) -> str:
  """The CRC-32 of a file, as eight hexadecimal digits.

  Read in pieces, some 1.5 GB/s; a cryptographic hash takes twice as long, and
  who can change files can change the hash beside them, too.

  Args:
    path: of the file.

  Returns:
    The text.
  """
  crc = 0
  with open(path, 'rb') as f:
    while piece := f.read(_BYTES_AT_ONCE):
      crc = zlib.crc32(piece, crc)
  return f'{crc:08x}'


def WithChecksum(info: Mapping[str, Any]) -> dict[str, Any]:
  """What the JSON file holds: the values, and a checksum of them.

  Args:
    info: of what JSON has.

  Returns:
    The values and `checksum`, whatever order and spaces they are written with.
  """
  values = {k: v for k, v in info.items() if k != 'checksum'}
  text = json.dumps(values, sort_keys=True).encode()
  return {**values, 'checksum': f'{zlib.crc32(text):08x}'}


def Verify(prefix: str) -> None:
  """Reads all of a checkpoint, one variable at a time, against its checksums.

  Args:
    prefix: of the checkpoint.

  Raises:
    CheckpointError: where anything is wrong with its files.
  """
  with Explained(prefix):
    _Verify(prefix)


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
    path, what = _BadFile(prefix, error), error_reason.Reason(error)
  raise checkpoint_files.CorruptError(
    f'checkpoint {prefix} is damaged, in {path}: {what}; {_Advice(prefix)}'
  ) from error


def _Advice(damaged: str) -> str:
  """How to go on without a damaged checkpoint, in a command to be copied."""
  directory = checkpoint_files.Directory(damaged)
  good = _NewestGood(damaged)
  step = -1 if good is None else checkpoint_files.StepOf(good)
  later = [
    p
    for p in checkpoint_files.Checkpoints(directory)
    if checkpoint_files.StepOf(p) > step
  ]
  if not later:
    return f'the newest good one is {good}'
  away = os.path.join(directory, 'damaged')
  files = ' '.join(f'{shlex.quote(p)}.*' for p in later)
  away = shlex.quote(away)
  command = f'mkdir -p {away} && mv {files} {away}'
  if good is None:
    return (
      'its directory has no other good one; to start from the beginning, give '
      f'another --logdir, or move it away: {command}'
    )
  return (
    f'the newest good one is {good}: to go on from there, move what comes '
    f'after it away: {command}'
  )


def _NewestGood(damaged: str) -> str | None:
  """The newest checkpoint beside a damaged one that can be read."""
  for prefix in reversed(
    checkpoint_files.Checkpoints(checkpoint_files.Directory(damaged))
  ):
    if os.path.basename(prefix) != os.path.basename(damaged):
      try:
        _Verify(prefix)
        return prefix
      except Exception as e:
        if not isinstance(
          e, checkpoint_files.CheckpointError
        ) and not _IsAboutFiles(e):
          raise
  return None


def _IsAboutFiles(error: Exception) -> bool:
  return (
    isinstance(error, (_DamagedFileError, *_FILE_ERRORS))
    or type(error) is tf.errors.OpError
  )


def _CheckContents(prefix: str) -> None:
  info = _ReadInfo(prefix)
  _CheckSizes(prefix, info)
  if 'checksums' in info:
    _CheckChecksums(prefix, info)
  else:
    _ReadTensors(prefix)


def _CheckChecksums(prefix: str, info: Mapping[str, Any]) -> None:
  for file, expected in info.get('checksums', {}).items():
    path = os.path.join(
      checkpoint_files.Directory(prefix), os.path.basename(file)
    )
    actual = Checksum(path)
    if actual != expected:
      raise _DamagedFileError(
        path,
        f'its content has changed since it was written (CRC-32 {actual} '
        f'instead of {expected})',
      )


def _Verify(prefix: str) -> None:
  info = _ReadInfo(prefix)
  _CheckSizes(prefix, info)
  _CheckChecksums(prefix, info)
  _ReadTensors(prefix)


def _ReadTensors(prefix: str) -> None:
  """Reads all variables, each of which TensorFlow has a checksum of."""
  reader = tf.train.load_checkpoint(prefix)
  for key in reader.get_variable_to_shape_map():
    reader.get_tensor(key)


def _ReadInfo(prefix: str) -> dict[str, Any]:
  path = f'{prefix}.json'
  try:
    with open(path, encoding='utf-8') as f:
      info = json.load(f)
  except FileNotFoundError as e:
    others = map(
      os.path.basename,
      checkpoint_files.Checkpoints(checkpoint_files.Directory(prefix)),
    )
    raise checkpoint_files.CheckpointError(
      f'there is no complete checkpoint {prefix}: {path} is missing; complete '
      f'ones there: {", ".join(others) or "none"}'
    ) from e
  except ValueError as e:
    raise _DamagedFileError(path, f'it is not JSON ({e})') from e
  version = info.get('format_version') if isinstance(info, dict) else None
  if not isinstance(version, int) or version < 1:
    raise _DamagedFileError(
      path, 'it has no format_version, so it is of another program'
    )
  if version > FORMAT_VERSION:
    raise checkpoint_files.CheckpointError(
      f'checkpoint {prefix} has format {version}, of a later version of this '
      f'program, which reads formats up to {FORMAT_VERSION}; update it'
    )
  fields = dict(_FIELDS)
  if version >= _WITH_CHECKSUMS:
    fields.update(checksums=dict, checksum=str)
  wrong = sorted(
    name
    for name, kind in fields.items()
    if not isinstance(info.get(name), kind)
  )
  if wrong:
    raise _DamagedFileError(path, f'it has no valid {", ".join(wrong)}')
  if version >= _WITH_CHECKSUMS:
    if WithChecksum(info)['checksum'] != info['checksum']:
      raise _DamagedFileError(
        path, 'its content has changed since it was written (its checksum)'
      )
    if info['checksums'].keys() != info['files'].keys():
      raise _DamagedFileError(path, 'files and checksums differ')
  if info['global_step'] != checkpoint_files.StepOf(prefix):
    raise _DamagedFileError(
      path, f'it is of step {info["global_step"]}; was it renamed?'
    )
  return info


def _CheckSizes(prefix: str, info: Mapping[str, Any]) -> None:
  for file, size in info['files'].items():
    path = os.path.join(
      checkpoint_files.Directory(prefix), os.path.basename(file)
    )
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
  return next((f for f in checkpoint_files.Files(prefix) if part in f), prefix)


def _Unescaped(key: str) -> str:
  """Undoes tf.train.Checkpoint's '.' -> '..', '/' -> '.S'."""
  return re.sub(r'\.(.)', lambda m: '/' if m[1] == 'S' else m[1], key)
