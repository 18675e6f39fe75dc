"""Cells to partitions: the optimal contiguous cut (paper section 2.1).

GPipe places K partitions of consecutive cells on K devices. The slowest one
sets the pace of the pipeline, so `Partition` minimises the cost of the largest
partition, and among all such cuts the sum of squares, which evens out the rest.
(The paper minimises the variance with a heuristic; this is exact.)

A partition that re-materializes runs its forward pass twice, hence costs
F + F + B for a micro-batch. The last partition needs not: its backward pass
starts right after its forward pass, so it costs F + B and can take more cells.

Where the memory of a device is bounded, only partitions that fit are chosen. A
partition may choose between policies of re-materialization: the cheapest that
fits. Where sending a partition's outputs takes longer than the partition
itself, that sets its pace. cut_search.py finds the best of all cuts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lingvo_gpipe.gpipe.planning import cut_search

# Integers up to here are exact in float64, and so are their sums.
_MAX_TOTAL = 2**52


class CellTime(NamedTuple):
  """The work of a cell for one micro-batch, in any one unit (FLOPs, seconds).

  Attributes:
    forward: F, of the forward pass.
    backward: B, of the backward pass, without any recomputation.
  """

  forward: float
  backward: float


class Option(NamedTuple):
  """A way to run a partition.

  Attributes:
    recompute: whether it runs its forward pass twice.
    fits: called with index arrays i and j; whether cells [i, j) may be run in
      this way. None: always.
  """

  recompute: bool
  fits: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


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
  cut = PartitionWithOptions(costs, [(Option(r),) for r in recompute])
  assert cut is not None  # Nothing forbids any.
  return cut


def PartitionWithOptions(
  costs: Sequence[CellTime],
  options: Sequence[Sequence[Option]],
  transfers: Sequence[float] | None = None,
  known: Sequence[tuple[int, int]] | None = None,
) -> list[tuple[int, int]] | None:
  """Cuts cells into partitions that may run in several ways.

  Args:
    costs: of each cell, in order.
    options: of each partition, one at least. It takes the cheapest that fits.
    transfers: of each cell, time to send its outputs to another device, in the
      unit of `costs`; devices send while they compute. None: no time.
    known: a cut whose partitions fit, which saves time where few do.

  Returns:
    The optimal cut as of Partition, or None if none has partitions that fit.

  Raises:
    ValueError: as of Partition.
  """
  num_partitions = len(options)
  CheckNumPartitions(num_partitions, len(costs))
  forward, backward, scale = _Integers(costs)
  if transfers is None:
    transfers = [0.0] * len(costs)
  # After the last cell nothing is sent.
  sending = np.array([0.0, *transfers[:-1], 0.0]) * scale
  # prefix[r][j] - prefix[r][i] is the cost of cells [i, j).
  prefix = {
    r: np.concatenate(([0.0], np.cumsum((1 + r) * forward + backward)))
    for r in (False, True)
  }
  # Equal options share a table.
  made = {}
  functions = [
    made.setdefault(
      tuple(of_one), functools.partial(_Cost, tuple(of_one), prefix, sending)
    )
    for of_one in options
  ]
  least = [min(option.recompute for option in of_one) for of_one in options]
  ends = _EvenEnds(prefix[max(least)], num_partitions)
  guess = max(
    prefix[r][j] - prefix[r][i]
    for r, i, j in zip(least, [0, *ends[:-1]], ends, strict=True)
  )
  most = np.inf
  if known is not None:
    most = max(
      float(cost(*map(np.array, ends)))
      for cost, ends in zip(functions, known, strict=True)
    )
  return cut_search.Search(functions, prefix[all(least)], guess, most)


def _Cost(
  options: Sequence[Option],
  prefix: dict[bool, np.ndarray],
  sending: np.ndarray,
  i: np.ndarray,
  j: np.ndarray,
) -> np.ndarray:
  """The cost of the cheapest option that fits cells [i, j)."""
  least = np.full(np.broadcast_shapes(i.shape, j.shape), np.inf)
  for option in options:
    values = prefix[option.recompute][j] - prefix[option.recompute][i]
    if option.fits is not None:
      values = np.where(option.fits(i, j), values, np.inf)
    np.minimum(least, values, out=least)
  return np.maximum(least, sending[j])


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


def _Integers(
  costs: Sequence[CellTime],
) -> tuple[np.ndarray, np.ndarray, float]:
  """Forward and backward costs as integers within float64, and their scale."""
  values = []
  for i, cell in enumerate(costs):
    for value in (cell.forward, cell.backward):
      if not (0 <= value < math.inf):
        raise ValueError(
          f'the cost of cell {i} is {value}; costs must be finite and not '
          'negative'
        )
      values.append(value)
  scale = 1.0
  if all(value == int(value) for value in values):
    values = [int(value) for value in values]
    divisor = math.gcd(*values) or 1
    values = [value // divisor for value in values]
    scale = 1 / divisor
  total = 2 * sum(values)
  if total > _MAX_TOTAL or not all(isinstance(value, int) for value in values):
    scale *= _MAX_TOTAL / total
    values = [round(value * (_MAX_TOTAL / total)) for value in values]
  pairs = np.array(values, np.float64).reshape(-1, 2)  # [cell, F and B]
  return pairs[:, 0], pairs[:, 1], scale


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
