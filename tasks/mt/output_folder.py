"""A folder of prepared data that appears at once, when all of it is written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from lingvo_gpipe import user_error


def Check(path: str, *, index: str, overwrite: bool) -> None:
  """Checks, before any long work, that data may be put at a path.

  Args:
    path: of the folder, which need not exist.
    index: the file that makes a folder one of prepared data.
    overwrite: whether data that is there may be replaced.

  Raises:
    UserError: for a file, and for a folder that holds something else, or what
      may not be replaced.
  """
  if not path:
    raise user_error.UserError(
      '--output is missing: name a new folder for the data'
    )
  flag = f'--output={path}'
  if os.path.exists(path) and not os.path.isdir(path):
    raise user_error.UserError(f'{flag} is a file; name a folder')
  with user_error.Expected(OSError, prefix=f'{flag}: '):
    files = os.listdir(path) if os.path.isdir(path) else []
  if files and not overwrite:
    raise user_error.UserError(
      f'{flag} is not empty; name another folder, or give --overwrite to '
      'replace the data there'
    )
  if files and index not in files:
    raise user_error.UserError(
      f'{flag} is not empty and has no {index}, so --overwrite leaves it '
      'alone; name another folder'
    )


@contextlib.contextmanager
def Writing(path: str, *, index: str, overwrite: bool) -> Iterator[str]:
  """Around writing the files of a folder.

  Args:
    path: of the folder, see Check.
    index: likewise.
    overwrite: likewise.

  Yields:
    A new folder beside it, which gets its name if the body succeeds, and is
    removed otherwise.

  Raises:
    UserError: where it cannot be written.
  """
  path = os.path.realpath(path)
  Check(path, index=index, overwrite=overwrite)
  parent, name = os.path.split(path)
  with user_error.Expected(OSError, prefix=f'--output={path}: '):
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f'.{name}-') as folder:
      data = os.path.join(folder, 'data')
      os.mkdir(data)
      yield data
      if os.path.exists(path):
        os.rename(path, os.path.join(folder, 'replaced'))
      os.rename(data, path)
