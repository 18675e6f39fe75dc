"""What programs share that are started from a command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from absl import flags

from lingvo_gpipe import user_error


def ParseFlags(argv: Sequence[str]) -> list[str]:
  """Parses absl's flags; a `flags_parser` for absl.app.run.

  Exits with status 2 and one line for flags that are wrong, with 0 after
  --help.

  Args:
    argv: the program's name and its arguments.

  Returns:
    The program's name and what no flag took.
  """
  try:
    return flags.FLAGS(argv)
  except flags.Error as e:
    sys.exit(ShowError(user_error.UserError(f'{e}; --help lists the flags')))
  except SystemExit:
    sys.exit(0)  # After --help, for which absl has 1.


def ShowError(error: user_error.UserError) -> int:
  """Shows an error as one line; returns the exit status."""
  print(f'error: {error}', file=sys.stderr, flush=True)
  return error.EXIT_STATUS
