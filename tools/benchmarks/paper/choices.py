"""Flags that take some of a few names."""

from __future__ import annotations

from collections.abc import Iterable

from absl import flags

from lingvo_gpipe import user_error


def Check(
  flag: flags.FlagHolder, known: Iterable[str], *, may_be_empty: bool = False
) -> None:
  """Raises UserError where a flag has a name that is not known, or none.

  Args:
    flag: with a list of names.
    known: those that it may have.
    may_be_empty: whether it may have none.
  """
  known = list(known)
  unknown = [name for name in flag.value if name not in known]
  if unknown or not (flag.value or may_be_empty):
    raise user_error.UserError(
      f'--{flag.name}={",".join(flag.value)}: choose from {", ".join(known)}'
    )
