"""Starts a tool: its flags, and errors as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from absl import app, flags, logging

from lingvo_gpipe import command_line, user_error


def Run(tool: Callable[[], int]) -> None:
  """Parses the flags, runs a tool and exits.

  Args:
    tool: returns the exit status. A UserError of it, or of the flags, is shown
      as one line.
  """
  app.run(lambda argv: _Main(tool, argv), flags_parser=command_line.ParseFlags)


def _Main(tool: Callable[[], int], argv: Sequence[str]) -> int:
  if not flags.FLAGS['verbosity'].present:
    logging.set_verbosity(logging.WARNING)
  try:
    if len(argv) > 1:
      raise user_error.UserError(
        f'unexpected argument {argv[1]!r}: all arguments are flags; --help '
        'lists them'
      )
    return tool()
  except user_error.UserError as e:
    return command_line.ShowError(e)
