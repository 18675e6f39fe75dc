"""Cells to partitions: the optimal contiguous cut (paper section 2.1).

GPipe places K partitions of consecutive cells on K devices. The slowest one
sets the pace of the pipeline, so `Partition` minimises the cost of the largest
partition, and among all such cuts the sum of squares, which evens out the rest.
(The paper minimises the variance with a heuristic; this is exact.)

A partition that re-materializes runs its forward pass twice, hence costs
F + F + B for a micro-batch. The last partition needs not: its backward pass
starts right after its forward pass, so it costs F + B and can take more cells.

The search is dynamic programming over prefixes of the list of cells:

  best[k][j] = min over i < j of  combine(best[k-1][i], cost_k(i, j))

where best[k][j] is the best value of cutting the first j cells into k + 1
partitions and cost_k(i, j) is the cost of partition k made of cells [i, j).
It runs twice: with combine = max it yields the smallest possible largest cost;
with combine = + over squared costs, and cuts above that bound forbidden, the
cut itself. No property of cost_k is used, so that further terms and bounds
can enter as entries of its table.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

# Integers up to here are exact in float64, and so are their sums.
_MAX_TOTAL = 2**52

# Columns of a cost table that are handled at once; fits the processor's cache.
_BLOCK = 64


class CellTime(NamedTuple):
  """The work of a cell for one micro-batch, in any one unit (FLOPs, seconds).

  Attributes:
    forward: F, of the forward pass.
    backward: B, of the backward pass, without any recomputation.
  """

  forward: float
  backward: float


class _Block(NamedTuple):
  """Costs of the partitions [i, j) for start <= i < stop, first <= j < stop."""

  start: int
  first: int
  stop: int
  costs: np.ndarray  # [stop - first, stop - start], infinite where forbidden


def DefaultRecompute(num_partitions: int) -> list[bool]:
  """Which partitions re-materialize: all but the last (module docstring)."""
  return [True] * (num_partitions - 1) + [False]


def CheckNumPartitions(num_partitions: int, num_cells: int) -> None:
  """Checks that no partition would be empty.

  Args:
    num_partitions: K.
    num_cells: L.

  Raises:
    ValueError: unless 1 <= K <= L.
  """
  if num_partitions < 1:
    raise ValueError(
      f'num_partitions={num_partitions} (--worker_split_size) must be 1 or more'
    )
  if num_partitions > num_cells:
    raise ValueError(
      f'{num_cells} cells cannot fill {num_partitions} partitions: each needs '
      f'one at least; set num_partitions (--worker_split_size) to {num_cells} '
      'or less, or define smaller cells'
    )


def Partition(
  costs: Sequence[CellTime],
  num_partitions: int,
  recompute: Sequence[bool] | None = None,
) -> list[tuple[int, int]]:
  """Cuts cells into contiguous partitions, none of them empty.

  The cut is optimal: no other has a smaller largest partition, and of those
  that are as good none has a smaller sum of squared partition costs. Costs that
  are integers are compared exactly, others to 2**-52 of their total.

  Args:
    costs: of each cell, in order.
    num_partitions: K.
    recompute: for each partition, whether it runs its forward pass twice; by
      default all but the last do.

  Returns:
    K ranges (start, end), end exclusive, that cover all cells in order.

  Raises:
    ValueError: where K exceeds the number of cells, and for costs that are
      negative or not finite.
  """
  CheckNumPartitions(num_partitions, len(costs))
  recompute = _CheckedRecompute(recompute, num_partitions)
  forward, backward = _Integers(costs)
  # prefix[r][j] - prefix[r][i] is the cost of cells [i, j).
  prefix = {
    r: np.concatenate(([0.0], np.cumsum((1 + r) * forward + backward)))
    for r in set(recompute)
  }

  # Any cut bounds the optimum from above, which keeps the tables small.
  ends = _EvenEnds(prefix[max(prefix)], num_partitions)
  bound = max(
    prefix[r][j] - prefix[r][i]
    for r, i, j in zip(recompute, [0, *ends[:-1]], ends, strict=True)
  )
  tables = {r: _Table(prefix[r], bound) for r in prefix}
  bound = _Sweep([tables[r] for r in recompute], np.maximum)[-1][-1]
  tables = {r: _Table(prefix[r], bound, np.square) for r in prefix}
  return _Backtrack([tables[r] for r in recompute])


def PartitionCosts(
  costs: Sequence[CellTime],
  partitions: Sequence[tuple[int, int]],
  recompute: Sequence[bool] | None = None,
) -> list[float]:
  """The cost of each partition for one micro-batch.

  Args:
    costs: of each cell.
    partitions: ranges (start, end) of cells.
    recompute: as in Partition.

  Returns:
    Sums of F + B, plus F where the partition recomputes.
  """
  recompute = _CheckedRecompute(recompute, len(partitions))
  return [
    sum((1 + r) * cell.forward + cell.backward for cell in costs[start:end])
    for r, (start, end) in zip(recompute, partitions, strict=True)
  ]


def SplitsToPartitions(
  splits: Sequence[int] | Sequence[str], cell_names: Sequence[str]
) -> list[tuple[int, int]]:
  """Partitions that the user cut by hand.

  Args:
    splits: for each partition either how many cells it has, as [4, 5, 5, 2], or
      the name of its last cell, as ['stem', 'cell_5', 'softmax'].
    cell_names: of all cells, in order.

  Returns:
    Ranges (start, end), end exclusive, as Partition returns.

  Raises:
    ValueError: where splits do not describe a cut of these cells.
  """
  splits = list(splits)
  if not splits:
    raise ValueError(
      'splits is empty; give a number of cells or the name of the last cell '
      'for each partition, or leave it None for an automatic cut'
    )
  if all(isinstance(s, str) for s in splits):
    ends = _NamedEnds(splits, list(cell_names))
  elif all(isinstance(s, int) and not isinstance(s, bool) for s in splits):
    ends = _CountedEnds(splits, len(cell_names))
  else:
    raise ValueError(
      f'splits={splits} must be all numbers of cells or all names of cells'
    )
  return list(zip([0, *ends[:-1]], ends, strict=True))


def _CountedEnds(splits: list[int], num_cells: int) -> list[int]:
  for k, count in enumerate(splits):
    if count < 1:
      raise ValueError(
        f'splits={splits} gives partition {k} {count} cells; each needs one '
        'at least'
      )
  if sum(splits) != num_cells:
    hint = ''
    if splits[-1] == num_cells and splits == sorted(set(splits)):
      counts = np.diff([0, *splits]).tolist()
      hint = f'; if these are end indices, write splits={counts}'
    raise ValueError(
      f'splits={splits} holds {sum(splits)} cells, but there are {num_cells}; '
      f'give the number of cells of each partition{hint}'
    )
  return np.cumsum(splits).tolist()


def _NamedEnds(splits: list[str], cell_names: list[str]) -> list[int]:
  ends = []
  for name in splits:
    places = [i for i, cell in enumerate(cell_names) if cell == name]
    if not places:
      near = difflib.get_close_matches(name, cell_names)
      hint = 'did you mean ' if near else 'there are '
      raise ValueError(
        f'splits names a cell {name!r} that is not there; '
        f'{hint}{", ".join(near or cell_names)}'
      )
    if len(places) > 1:
      raise ValueError(
        f'splits names the cell {name!r}, but cells {places} all have that '
        'name; give numbers of cells instead'
      )
    ends.append(places[0] + 1)
  if ends != sorted(set(ends)):
    raise ValueError(
      f'splits={splits} are not in the order of the cells '
      f'{", ".join(cell_names)}, or one comes twice'
    )
  if ends[-1] != len(cell_names):
    raise ValueError(
      f'splits={splits} ends at cell {splits[-1]!r}, which leaves out '
      f'{len(cell_names) - ends[-1]} cells; the last one must be '
      f'{cell_names[-1]!r}'
    )
  return ends


def _CheckedRecompute(
  recompute: Sequence[bool] | None, num_partitions: int
) -> list[bool]:
  if recompute is None:
    return DefaultRecompute(num_partitions)
  if len(recompute) != num_partitions:
    raise ValueError(
      f'recompute has {len(recompute)} entries for {num_partitions} '
      'partitions; give one for each'
    )
  return [bool(r) for r in recompute]


def _Integers(costs: Sequence[CellTime]) -> tuple[np.ndarray, np.ndarray]:
  """Forward and backward costs, scaled to integers within float64."""
  values = []
  for i, cell in enumerate(costs):
    for value in (cell.forward, cell.backward):
      if not (0 <= value < math.inf):
        raise ValueError(
          f'the cost of cell {i} is {value}; costs must be finite and not '
          'negative'
        )
      values.append(value)
  if all(value == int(value) for value in values):
    values = [int(value) for value in values]
    divisor = math.gcd(*values) or 1
    values = [value // divisor for value in values]
  total = 2 * sum(values)
  if total > _MAX_TOTAL or not all(isinstance(value, int) for value in values):
    values = [round(value * (_MAX_TOTAL / total)) for value in values]
  pairs = np.array(values, np.float64).reshape(-1, 2)  # [cell, F and B]
  return pairs[:, 0], pairs[:, 1]


def _EvenEnds(prefix: np.ndarray, num_partitions: int) -> list[int]:
  """Ends of a cut near equal shares of the total; a first guess."""
  num_cells = len(prefix) - 1
  shares = prefix[-1] * np.arange(1, num_partitions + 1) / num_partitions
  ends = np.searchsorted(prefix, shares)
  # No partition may be empty: at least k + 1 cells before the end of k, and
  # enough of them after it.
  k = np.arange(num_partitions)
  ends = np.maximum.accumulate(np.maximum(ends, 1) - k) + k
  ends = np.minimum(ends, num_cells - (num_partitions - 1 - k))
  ends[-1] = num_cells
  return ends.tolist()


def _Table(
  prefix: np.ndarray,
  bound: float,
  transform: Callable[[np.ndarray], np.ndarray] | None = None,
) -> list[_Block]:
  """Costs of all partitions that cost no more than `bound`."""
  blocks = []
  for first in range(1, len(prefix), _BLOCK):
    stop = min(first + _BLOCK, len(prefix))
    start = int(np.searchsorted(prefix, prefix[first] - bound))
    i, j = np.arange(start, stop)[None, :], np.arange(first, stop)[:, None]
    costs = prefix[j] - prefix[i]
    forbidden = (i >= j) | (costs > bound)
    if transform is not None:
      costs = transform(costs)
    costs[forbidden] = np.inf
    blocks.append(_Block(start, first, stop, costs))
  return blocks


def _Sweep(
  tables: list[list[_Block]], combine: Callable[..., np.ndarray]
) -> list[np.ndarray]:
  """best[k][j] of the module docstring, after the empty prefix at index 0."""
  num_cells = tables[0][-1].stop - 1
  best = [np.full(num_cells + 1, np.inf)]
  best[0][0] = 0.0
  for k, table in enumerate(tables):
    # Cells that the partitions to come need at least.
    end = num_cells - (len(tables) - 1 - k)
    values = np.full(num_cells + 1, np.inf)
    for block in table:
      if block.first > end or block.stop <= k + 1:
        continue
      before = best[-1][block.start : block.stop]
      values[block.first : block.stop] = combine(before, block.costs).min(
        axis=1
      )
    best.append(values)
  return best


def _Backtrack(tables: list[list[_Block]]) -> list[tuple[int, int]]:
  """The cut with the smallest sum; the earliest ends where several have it."""
  best = _Sweep(tables, np.add)
  partitions = []
  end = len(best[0]) - 1
  for before, table in zip(best[-2::-1], tables[::-1], strict=True):
    block = table[(end - 1) // _BLOCK]
    costs = block.costs[end - block.first]
    start = block.start + int(
      np.argmin(before[block.start : block.stop] + costs)
    )
    partitions.append((start, end))
    end = start
  return partitions[::-1]
