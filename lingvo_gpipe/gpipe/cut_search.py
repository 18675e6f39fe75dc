"""The best cut of a list of cells, whatever partitions cost.

Dynamic programming over prefixes of the list:

  best[k][j] = min over i < j of  combine(best[k-1][i], cost_k(i, j))

where best[k][j] is the best value of cutting the first j cells into k + 1
partitions and cost_k(i, j) is the cost of partition k made of cells [i, j). It
runs twice: with combine = max it yields the smallest possible largest cost;
with combine = + over squared costs, and cuts above that bound forbidden, the
cut itself. The second evens out the partitions that do not set the pace.

No property of the costs is used but a lower bound, which tells from where on a
range is too expensive: most tables are narrow bands then. To begin with, the
search looks for cuts under a guess of the optimum, which is doubled until there
is one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable

import numpy as np

# Columns of a cost table that are handled at once; fits the processor's cache.
_BLOCK = 64


class Costs(abc.ABC):
  """What partition k costs if it is made of cells [i, j).

  Attributes:
    num_cells: of the list.
  """

  num_cells: int

  @abc.abstractmethod
  def Key(self, k: int) -> Hashable:
    """Equal for partitions with equal costs."""

  @abc.abstractmethod
  def Table(self, k: int, starts: range, ends: range) -> np.ndarray:
    """Costs, infinite where forbidden.

    Args:
      k: the partition.
      starts: i.
      ends: j.

    Returns:
      float64 [len(ends), len(starts)]; what stands where i >= j is not read.
    """

  @abc.abstractmethod
  def Earliest(self, k: int, end: int, bound: float) -> int:
    """No range [i, end) with a smaller i costs `bound` or less."""

  @abc.abstractmethod
  def Latest(self, k: int, start: int, bound: float) -> int:
    """No range [start, j) with a larger j costs `bound` or less."""

  @abc.abstractmethod
  def UpperBound(self) -> float:
    """No range that is allowed costs more."""


def Search(
  costs: Costs, num_partitions: int, guess: float
) -> list[tuple[int, int]] | None:
  """The cut with the smallest largest cost, then sum of squared costs.

  Of several such cuts, the one whose partitions end earliest, the last first.

  Args:
    costs: of partitions.
    num_partitions: K, at most the number of cells.
    guess: about the largest cost of a good cut; only speed depends on it.

  Returns:
    K ranges (start, end) that cover all cells in order; None if every cut has a
    forbidden partition.
  """
  limit = costs.UpperBound()
  guess = guess if guess > 0 else limit
  while True:
    bound = min(guess, limit)
    optimum = _Sweep(costs, num_partitions, bound, np.maximum)
    if optimum is not None:
      break
    if bound >= limit:
      return None
    guess *= 2
  optimum = float(optimum[-1][-1])
  best = _Sweep(costs, num_partitions, optimum, _AddSquare)
  return _Backtrack(costs, best, optimum)


def _AddSquare(before: np.ndarray, costs: np.ndarray) -> np.ndarray:
  return before + np.square(costs)


def _Windows(
  costs: Costs, num_partitions: int, bound: float
) -> list[range] | None:
  """Where each partition can end if none costs more than `bound`."""
  last = num_partitions - 1
  latest, end = [], 0
  for k in range(num_partitions):
    end = min(costs.Latest(k, end, bound), costs.num_cells - (last - k))
    latest.append(end)
  earliest, start = [costs.num_cells], costs.num_cells
  for k in range(last, 0, -1):
    start = max(costs.Earliest(k, start, bound), k)
    earliest.append(start)
  earliest.reverse()
  windows = [
    range(low, high + 1) for low, high in zip(earliest, latest, strict=True)
  ]
  return windows if all(windows) else None


def _Sweep(
  costs: Costs,
  num_partitions: int,
  bound: float,
  combine: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[np.ndarray] | None:
  """best[k][j] of the module docstring, after the empty prefix at index 0.

  Args:
    costs: of partitions.
    num_partitions: K.
    bound: partitions that cost more are forbidden.
    combine: see the module's docstring.

  Returns:
    K + 1 arrays [num_cells + 1]; None if there is no cut.
  """
  windows = _Windows(costs, num_partitions, bound)
  if windows is None:
    return None
  best = [np.full(costs.num_cells + 1, np.inf)]
  best[0][0] = 0.0
  key, tables = None, {}
  for k, window in enumerate(windows):
    if key != costs.Key(k):
      key, tables = costs.Key(k), {}
    values = np.full(costs.num_cells + 1, np.inf)
    for block in range(window.start // _BLOCK, (window.stop - 1) // _BLOCK + 1):
      if block not in tables:
        tables[block] = _Block(costs, k, block, bound)
      starts, ends, table = tables[block]
      if starts:
        combined = combine(best[-1][starts.start : starts.stop], table)
        values[ends.start : ends.stop] = combined.min(axis=1)
    # Beyond the window no cut can be completed.
    values[: window.start] = np.inf
    values[window.stop :] = np.inf
    best.append(values)
  return best if np.isfinite(best[-1][-1]) else None


def _Block(
  costs: Costs, k: int, block: int, bound: float
) -> tuple[range, range, np.ndarray]:
  """(starts, ends, costs) of the ranges that end in a block."""
  first = max(block * _BLOCK, 1)
  ends = range(first, min((block + 1) * _BLOCK, costs.num_cells + 1))
  starts = range(costs.Earliest(k, first, bound), ends.stop - 1)
  if not starts:
    return starts, ends, np.empty([len(ends), 0])
  table = costs.Table(k, starts, ends)
  forbidden = table > bound
  forbidden |= (
    np.arange(starts.start, starts.stop)[None, :]
    >= np.arange(ends.start, ends.stop)[:, None]
  )
  table[forbidden] = np.inf
  return starts, ends, table


def _Backtrack(
  costs: Costs, best: list[np.ndarray], bound: float
) -> list[tuple[int, int]]:
  """The cut with the smallest sum of squares."""
  ranges = []
  end = costs.num_cells
  for k in range(len(best) - 2, -1, -1):
    starts = range(costs.Earliest(k, end, bound), end)
    table = costs.Table(k, starts, range(end, end + 1))[0]
    table[table > bound] = np.inf
    values = _AddSquare(best[k][starts.start : starts.stop], table)
    start = starts.start + int(np.argmin(values))
    ranges.append((start, end))
    end = start
  return ranges[::-1]
