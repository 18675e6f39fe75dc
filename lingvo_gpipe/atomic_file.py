"""Files that appear whole: who reads one sees the old content or the new."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def Writing(path: str, *, binary: bool = False) -> Iterator[IO[Any]]:
  """Around writing a file, which gets its name if the body succeeds.

  Args:
    path: of the file; its directory exists.
    binary: whether bytes are written; else text, in UTF-8.

  Yields:
    The file, open for writing.

  Raises:
    OSError: where it cannot be written; what was there before stays.
  """
  directory, name = os.path.split(os.path.abspath(path))
  descriptor, temporary = tempfile.mkstemp(prefix=f'.{name}.', dir=directory)
  text = {} if binary else {'encoding': 'utf-8', 'newline': '\n'}
  try:
    with open(descriptor, 'wb' if binary else 'w', **text) as f:
      yield f
      # mkstemp's files are for their owner only.
      os.fchmod(f.fileno(), 0o666 & ~_Umask())
      f.flush()
      os.fsync(f.fileno())
    os.replace(temporary, path)
  except BaseException:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(temporary)
    raise


def _Umask() -> int:
  umask = os.umask(0)
  os.umask(umask)
  return umask
