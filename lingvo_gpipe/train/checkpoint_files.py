"""Directories of checkpoints: which there are, and their files.

  ckpt-00000100.index       names, shapes      } by tf.train.Checkpoint
  ckpt-00000100.data-*      values             }
  ckpt-00000100.json        model, step, sizes and checksums, metadata
  best.json                 the step with the best metric, where recorded

The JSON file comes last and goes first: a checkpoint without it is not
complete. A checkpoint is named by its prefix, '<directory>/ckpt-00000100'.
"""

from __future__ import annotations

import os
import re

_NAME_RE = re.compile(r'ckpt-(\d{8,})')


class CheckpointError(Exception):
  """A checkpoint cannot be written or read; the message says what to do."""


class MismatchError(CheckpointError):
  """The checkpoint is of another model."""


class CorruptError(CheckpointError):
  """A file of the checkpoint is damaged."""


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
  except (FileNotFoundError, NotADirectoryError):
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
  directory, name = Directory(prefix), os.path.basename(prefix)
  files = [f for f in os.listdir(directory) if f.split('.')[0] == name]
  files.sort(key=lambda f: (not f.endswith('.json'), f))
  return [os.path.join(directory, f) for f in files]


def Delete(prefix: str) -> None:
  """Deletes a checkpoint, first what makes it complete."""
  for path in Files(prefix):
    os.unlink(path)


def Directory(prefix: str) -> str:
  """The directory of a checkpoint."""
  return os.path.dirname(prefix) or '.'
