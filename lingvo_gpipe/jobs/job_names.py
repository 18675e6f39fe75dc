"""The jobs of one process: the names in --job, one or several."""

from __future__ import annotations

from lingvo_gpipe import user_error

JOBS = ('trainer', 'evaler', 'decoder', 'worker')


def Parse(text: str) -> tuple[str, ...]:
  """The names in the flag.

  Args:
    text: such as 'evaler' or 'trainer,evaler'.

  Returns:
    Some of JOBS, as given.

  Raises:
    UserError: for a name that is none or comes twice, and for a worker that is
      to do something else, too.
  """
  names = tuple(text.split(','))
  for name in names:
    if name not in JOBS:
      raise user_error.UserError(
        f'--job={text}: there is no job {name!r}; give one of '
        f'{", ".join(JOBS)}, or several such as trainer,evaler'
      )
    if names.count(name) > 1:
      raise user_error.UserError(f'--job={text} names {name} twice')
  if 'worker' in names and len(names) > 1:
    raise user_error.UserError(
      f'--job={text}: a worker computes for other jobs and does nothing else; '
      'start it as a process of its own'
    )
  return names
