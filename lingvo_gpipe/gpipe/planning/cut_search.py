"""The best contiguous cut of a list of cells, for any cost of a partition.

Dynamic programming over prefixes of the list:

  best[k][j] = min over i < j of  combine(best[k-1][i], cost_k(i, j))

where best[k][j] is the best value of cutting the first j cells into k + 1
partitions and cost_k(i, j) is the cost of partition k made of cells [i, j),
infinite where it is not allowed. It runs twice: with combine = max it yields
the smallest possible largest cost; with combine = + over squared costs, and
partitions above that bound forbidden, the cut itself.

Of cost_k nothing is used but a lower bound, a difference of prefix sums. With a
bound from above it says how long a partition can be, and how far k partitions
can reach from either end: only there costs are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

# Ends of partitions whose costs are asked for at once; fits processors' caches.
_CHUNK = 64

# Called with indices i and j that broadcast against each other; returns costs.
CostFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


def Search(
  costs: Sequence[CostFunction],
  lower: np.ndarray,
  guess: float,
  most: float = np.inf,
) -> list[tuple[int, int]] | None:
  """The best cut: the smallest largest cost, then the smallest sum of squares.

  Args:
    costs: of each partition; one and the same function for several partitions
      is tabulated once.
    lower: [num_cells + 1], not decreasing; lower[j] - lower[i] must not exceed
      any finite cost of cells [i, j).
    guess: of the largest cost of the best cut. The nearer, the faster.
    most: what no partition may cost more than.

  Returns:
    Ranges (start, end), end exclusive, or None if no cut is allowed. Where
    several cuts are best, the one with the earliest ends.
  """
  limit = float(lower[-1])
  bound = min(max(guess, 0.0), most)
  while True:
    best = _Sweep(costs, lower, bound, np.maximum).value
    if np.isfinite(best):
      break
    if bound == most:
      return None
    # Costs may exceed the sum of all lower bounds; then nothing is left out.
    bound = min(2 * bound, most) if 0 < bound < limit else most
  ends = [len(lower) - 1]
  for starts in reversed(_Sweep(costs, lower, best, np.add, np.square).starts):
    ends.append(int(starts[ends[-1]]))
  ends.reverse()
  return list(itertools.pairwise(ends))


class _Swept(NamedTuple):
  """Attributes:
  value: best[K - 1][L] of the module's docstring.
  starts: for each partition [num_cells + 1], the start of the best one that
    ends there.
  """

  value: float
  starts: list[np.ndarray]


def _Sweep(
  costs: Sequence[CostFunction],
  lower: np.ndarray,
  bound: float,
  combine: Callable[..., np.ndarray],
  transform: Callable[[np.ndarray], np.ndarray] | None = None,
) -> _Swept:
  """The dynamic program, without partitions that cost more than `bound`."""
  num_cells = len(lower) - 1
  table = _Table(lower, bound, transform)
  best = np.full(num_cells + 1, np.inf)
  best[0] = 0.0
  starts = []
  for cost, (low, high) in zip(
    costs, _Reach(lower, bound, len(costs)), strict=True
  ):
    values = np.full(num_cells + 1, np.inf)
    chosen = np.zeros(num_cells + 1, np.int64)
    for chunk in range(low // _CHUNK, high // _CHUNK + 1):
      i, of_chunk = table.Costs(cost, chunk)
      total = combine(best[i], of_chunk)
      place = total.argmin(axis=1)
      rows = np.arange(len(place))
      ends = slice(chunk * _CHUNK, chunk * _CHUNK + len(place))
      values[ends] = total[rows, place]
      chosen[ends] = i[rows, place]
    values[:low] = values[high + 1 :] = np.inf
    best = values
    starts.append(chosen)
  return _Swept(float(best[-1]), starts)


def _Reach(
  lower: np.ndarray, bound: float, num_partitions: int
) -> list[tuple[int, int]]:
  """For each partition the first and the last end that it can have."""
  num_cells = len(lower) - 1
  first, last = [num_cells], [0]
  for _ in range(num_partitions):
    # One cell at least, and at most what the bound allows.
    start = int(np.searchsorted(lower, lower[first[-1]] - bound))
    first.append(max(min(start, first[-1] - 1), 0))
    end = int(np.searchsorted(lower, lower[last[-1]] + bound, 'right')) - 1
    last.append(min(max(end, last[-1] + 1), num_cells))
  return [
    (max(low, k + 1), min(high, num_cells - (num_partitions - 1 - k)))
    for k, (low, high) in enumerate(zip(first[-2::-1], last[1:], strict=True))
  ]


class _Table:
  """Costs of all partitions that cost no more than `bound`, as asked for."""

  def __init__(
    self,
    lower: np.ndarray,
    bound: float,
    transform: Callable[[np.ndarray], np.ndarray] | None,
  ):
    self._lower = lower
    self._bound = bound
    self._transform = transform
    self._made: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

  def Costs(
    self, cost: CostFunction, chunk: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """Of the partitions that end in a chunk.

    Args:
      cost: of the partition; equal ones share what was asked for.
      chunk: index; the ends are chunk * _CHUNK and those after it.

    Returns:
      (i, costs), both [ends, width]: starts in ascending order, and the costs,
      infinite where forbidden.
    """
    key = cost, chunk
    if key not in self._made:
      self._made[key] = self._Make(cost, chunk)
    return self._made[key]

  def _Make(self, cost, chunk) -> tuple[np.ndarray, np.ndarray]:
    ends = np.arange(
      chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(self._lower))
    )
    starts = np.searchsorted(self._lower, self._lower[ends] - self._bound)
    width = max(int((ends - starts).max()), 1)
    j = ends[:, np.newaxis]
    i = j - width + np.arange(width)
    valid = i >= 0
    i = np.maximum(i, 0)
    # Never asked for an empty range: the end 0 has none.
    values = np.array(cost(i, np.maximum(j, 1)), np.float64)
    forbidden = ~valid | (values > self._bound) | (j == 0)
    if self._transform is not None:
      values = self._transform(values)
    values[forbidden] = np.inf
    return i, values
