"""Files without which a run's checkpoints say nothing, such as a vocabulary.

An input names them (BaseInput.Assets), the trainer copies them into the log
directory, and every job checks that they are still the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lingvo_gpipe import atomic_file, user_error
from lingvo_gpipe.jobs import logdir as logdir_lib


def Check(logdir: logdir_lib.LogDir, assets: Mapping[str, bytes]) -> None:
  """Checks that a run, if it has begun, has these files.

  Args:
    logdir: of the run.
    assets: {name of a file: its content}.

  Raises:
    UserError: where it has others.
  """
  for name, content in assets.items():
    path = logdir.AssetPath(name)
    try:
      with open(path, 'rb') as f:
        same = f.read() == content
    except FileNotFoundError:
      continue
    except OSError as e:
      raise user_error.UserError(f'{path}: {e}') from e
    if not same:
      raise user_error.UserError(
        f'{path} differs from {name} of the data: this run was started with '
        'other data, by which alone its checkpoints can be understood; name '
        'that data (--data_dir), or another --logdir'
      )


def Write(logdir: logdir_lib.LogDir, assets: Mapping[str, bytes]) -> None:
  """Copies files into the log directory.

  Args:
    logdir: of the run.
    assets: {name of a file: its content}.

  Raises:
    UserError: where they cannot be written.
  """
  for name, content in assets.items():
    path = logdir.AssetPath(name)
    with user_error.Expected(OSError):
      os.makedirs(os.path.dirname(path), exist_ok=True)
      with atomic_file.Writing(path, binary=True) as f:
        f.write(content)


def Read(logdir: logdir_lib.LogDir, name: str) -> bytes:
  """A file that the trainer has copied.

  Args:
    logdir: of the run.
    name: of the file.

  Returns:
    Its content.

  Raises:
    UserError: where there is none.
  """
  path = logdir.AssetPath(name)
  try:
    with open(path, 'rb') as f:
      return f.read()
  except OSError as e:
    raise user_error.UserError(
      f'{path} cannot be read ({e.strerror}); give the --logdir of a run that '
      'has been trained'
    ) from e
