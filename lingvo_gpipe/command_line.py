"""What programs share that are started from a command line."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence

from absl import flags

from lingvo_gpipe import log_lines, user_error


def ParseFlags(argv: Sequence[str]) -> list[str]:
  """Parses absl's flags; a `flags_parser` for absl.app.run.

  Exits with status 2 and one line for flags that are wrong, with 0 after
  --help. Programs that have the flag --log_format show lines as it says from
  here on.

  Args:
    argv: the program's name and its arguments.

  Returns:
    The program's name and what no flag took.
  """
  if 'log_format' in flags.FLAGS:
    log_lines.SetFormat(_LogFormat(argv))
  try:
    return flags.FLAGS(argv)
  except flags.Error as e:
    sys.exit(ShowError(user_error.UserError(f'{e}; --help lists the flags')))
  except SystemExit:
    sys.exit(0)  # After --help, for which absl has 1.


def _LogFormat(argv: Sequence[str]) -> str:
  """The flag, also where others are wrong: that will be said in this format."""
  only = flags.FlagValues()
  only['log_format'] = copy.deepcopy(flags.FLAGS['log_format'])
  only.set_gnu_getopt(True)  # Goes on after what no flag takes.
  try:
    only(argv, known_only=True)
    return only.log_format
  except flags.Error:
    return 'text'


def ShowError(error: user_error.UserError) -> int:
  """Shows an error as one line; returns the exit status."""
  log_lines.Show(f'error: {error}', sys.stderr)
  return error.EXIT_STATUS
