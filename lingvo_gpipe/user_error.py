"""Errors that the person who typed the command can mend.

They are shown as one line on stderr, `error: what, why, what to do`, with exit
status 2 (1 where training itself failed). Every other exception is a fault of a
program: it keeps its traceback and exits with status 1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class UserError(Exception):
  """What is wrong with the command, its params or its files, in one line."""

  EXIT_STATUS = 2

  def __init__(self, message: object):
    super().__init__(' '.join(str(message).split()))


class TrainingError(UserError):
  """A run that had to give up though all that was typed is well formed."""

  EXIT_STATUS = 1


@contextlib.contextmanager
def Expected(
  *types: type[BaseException], prefix: str = '', when: bool = True
) -> Iterator[None]:
  """Turns errors of `types` in its body into UserErrors.

  An exception with notes comes out of a cell's own code (gpipe/stage.py adds
  them), so it is the program's and passes as it is.

  Args:
    *types: exceptions that bad input raises in the body.
    prefix: what was being read, put in front of the message.
    when: False lets everything pass.

  Yields:
    Nothing.

  Raises:
    UserError: caused by the caught exception.
  """
  try:
    yield
  except types as e:
    if not when or isinstance(e, UserError) or getattr(e, '__notes__', None):
      raise
    raise UserError(f'{prefix}{e}') from e
