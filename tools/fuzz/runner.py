"""Runs a property on many cases; a failure can be run again alone."""

from __future__ import annotations

import random
from collections.abc import Callable

Property = Callable[[random.Random], None]


class Failure(AssertionError):
  """A case for which a property does not hold; names it."""


def Random(name: str, seed: int, case: int) -> random.Random:
  """The random numbers of a case: the same whatever else runs."""
  return random.Random(f'{name} {seed} {case}')


def Run(
  name: str,
  check: Property,
  *,
  cases: int,
  first: int = 0,
  seed: int = 1,
  progress: Callable[[int], None] = lambda done: None,
) -> None:
  """Checks a property.

  Args:
    name: of the property.
    check: raises anything where it does not hold.
    cases: how many.
    first: number of the first.
    seed: of all.
    progress: called after each case, with how many are done.

  Raises:
    Failure: for the first case for which it does not hold.
  """
  for i in range(first, first + cases):
    try:
      check(Random(name, seed, i))
    except Exception as e:
      raise Failure(
        f'{name} does not hold in case {i}: {type(e).__name__}: {e}. Again: '
        f'--only={name} --first={i} --cases=1 --seed={seed}'
      ) from e
    progress(i - first + 1)
