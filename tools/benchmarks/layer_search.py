"""Finds the largest number that fits, with few trials."""

from __future__ import annotations

from collections.abc import Callable


def LargestFitting(
  try_size: Callable[[int], float | None], limit: float, *, first: int = 1
) -> int:
  """The largest size that fits, where all smaller ones fit too.

  What is taken grows about linearly, so two sizes that fit predict the largest.
  The prediction is tried; what remains between a size that fits and one that
  does not is halved.

  Args:
    try_size: whether a size of 1 or more fits: returns what it takes of
      `limit`, or None where it does not fit.
    limit: what may be taken.
    first: the size to try first.

  Returns:
    The size; 0 where not even 1 fits.
  """
  fits = {0: 0.0}
  too_large = None
  size = first
  while too_large is None or too_large - max(fits) > 1:
    taken = try_size(size)
    if taken is None:
      too_large = size
    else:
      fits[size] = taken
    largest = max(fits)
    if too_large is not None:
      size = (largest + too_large) // 2
    else:
      size = _Predict(fits, limit)
  return max(fits)


def _Predict(fits: dict[int, float], limit: float) -> int:
  """A size above all that fit: where the line through two meets the limit."""
  second, largest = sorted(fits)[-2:]
  if second == 0:  # A single size says nothing about what is not its due.
    return 2 * largest
  slope = (fits[largest] - fits[second]) / (largest - second)
  room = limit - fits[largest]
  further = int(room / slope) if slope > 0 else largest
  return largest + max(1, min(further, 4 * largest))
