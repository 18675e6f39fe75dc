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
    with _NamedErrors(path):
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


def Append(path: str, content: bytes, *, sync: bool = False) -> None:
  """Adds to the end of a file, all of the content or nothing.

  What several processes add at the same time does not mix.

  Args:
    path: of the file, which is made where it is missing; its directory exists.
    content: what is added.
    sync: whether to wait until it is on the disk.

  Raises:
    OSError: where that fails, because the disk is full for example. The file
      then ends where it did before.
  """
  with _NamedErrors(path), open(path, 'ab', buffering=0) as f:
    rest = content
    try:
      while rest:  # A full disk first takes a part.
        rest = rest[f.write(rest) :]
      if sync:
        os.fsync(f.fileno())
    except OSError:
      _CutOff(f, len(content) - len(rest))
      raise


def _CutOff(file: IO[bytes], size: int) -> None:
  """Takes back what was added last, unless something came after it."""
  with contextlib.suppress(OSError):
    if size and os.fstat(file.fileno()).st_size == file.tell():
      file.truncate(file.tell() - size)


@contextlib.contextmanager
def _NamedErrors(path: str) -> Iterator[None]:
  """Errors of writing to an open file do not say which; here they do."""
  try:
    yield
  except OSError as e:
    if e.filename is None and e.errno is not None:
      e.filename = path
    raise


def _Umask() -> int:
  umask = os.umask(0)
  os.umask(umask)
  return umask
