"""The error for workers that are gone, and how it is told from others."""

from __future__ import annotations

import sys


class WorkerLostError(RuntimeError):
  """A worker has ended unasked, does not answer, or could not be started.

  Args:
    message: which worker, and why.
    comes_back: whether the same may go well once more; not where it would only
      run out of memory again.
  """

  def __init__(self, message: str, *, comes_back: bool = True):
    super().__init__(message)
    self.comes_back = comes_back


def IsOfRuntime(error: BaseException | None) -> bool:
  """Whether TensorFlow's runtime has raised an error, or what caused it."""
  return _Find(error, 'OpError') is not None


def BrokenConnection(error: BaseException | None) -> str:
  """What TensorFlow says of a connection that broke; '' for other errors."""
  kinds = ('UnavailableError', 'AbortedError', 'DeadlineExceededError')
  found = _Find(error, *kinds)
  if found is None or '/job:worker' not in str(found):
    return ''
  lines = [line.strip() for line in str(found).splitlines() if line.strip()]
  return next((x for x in lines if 'GRPC' in x or 'grpc' in x), lines[0])


def _Find(error: BaseException | None, *kinds: str) -> BaseException | None:
  """The first of an error and its causes that is of one of the kinds."""
  # Not imported here: workers can start while the program imports TensorFlow.
  tf = sys.modules.get('tensorflow')
  if tf is None:
    return None
  types = tuple(getattr(tf.errors, kind) for kind in kinds)
  while error is not None and not isinstance(error, types):
    error = error.__cause__ or error.__context__
  return error
