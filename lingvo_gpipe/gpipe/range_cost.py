"""Quantities of all ranges [i, j) of consecutive cells at once.

Work, traffic and memory of a partition are sums of a few kinds of terms: of all
its cells, of its first or last one (what crosses its borders), of its largest
one, of things that several cells share, of connections with one end inside. A
`RangeCost` is such a sum, for every i and j:

  value(i, j) = ends[j] - starts[i]
                + factor * max(largest[i:j]) + ...
                - factor * crossing[i, j] - ...

where crossing[i, j] adds up pairs of cells a < i and b >= j. It takes memory in
proportion to the number of cells (its square where pairs are given), and is
evaluated where it is asked for. Values that are integers below 2**53 stay exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class RangeCost:
  """See the module's docstring.

  Attributes:
    ends: float64 [num_cells + 1].
    starts: float64 [num_cells + 1].
    prefix: float64 [num_cells + 1], ascending; no value(i, j) is less than
      prefix[j] - prefix[i].
    largest: (factor, [num_cells]) pairs.
    crossing: (factor, [num_cells + 1, num_cells + 1]) pairs.
  """

  ends: np.ndarray
  starts: np.ndarray
  prefix: np.ndarray
  largest: tuple[tuple[float, np.ndarray], ...] = ()
  crossing: tuple[tuple[float, np.ndarray], ...] = ()

  @property
  def num_cells(self) -> int:
    return len(self.ends) - 1

  def __add__(self, other: RangeCost) -> RangeCost:
    return RangeCost(
      self.ends + other.ends,
      self.starts + other.starts,
      self.prefix + other.prefix,
      _Merged(self.largest + other.largest),
      _Merged(self.crossing + other.crossing),
    )

  def Scaled(self, factor: float) -> RangeCost:
    """The product with a number that is not negative."""
    if not factor:
      return Zero(self.num_cells)
    return RangeCost(
      self.ends * factor,
      self.starts * factor,
      self.prefix * factor,
      tuple((factor * f, values) for f, values in self.largest),
      tuple((factor * f, table) for f, table in self.crossing),
    )

  def At(self, start: int, end: int) -> float:
    """value(start, end)."""
    value = self.ends[end] - self.starts[start]
    for factor, values in self.largest:
      value += factor * values[start:end].max()
    for factor, table in self.crossing:
      value -= factor * table[start, end]
    return float(value)

  def Table(self, starts: range, ends: range) -> np.ndarray:
    """Values of many ranges.

    Args:
      starts: of the ranges.
      ends: of the ranges.

    Returns:
      float64 [len(ends), len(starts)]; entries with i >= j mean nothing.
    """
    i, j = _Slice(starts), _Slice(ends)
    table = self.ends[j, None] - self.starts[None, i]
    for factor, values in self.largest:
      table += factor * _Largest(values, starts, ends)
    for factor, pairs in self.crossing:
      table -= factor * pairs[i, j].T
    return table

  def UpperBound(self) -> float:
    """A number that no value exceeds."""
    bound = self.ends.max() - self.starts.min()
    for factor, values in self.largest:
      bound += factor * values.max()
    return float(bound)


def Zero(num_cells: int) -> RangeCost:
  """0 for every range."""
  return RangeCost(*[np.zeros(num_cells + 1)] * 3)


def Sum(values: Sequence[float]) -> RangeCost:
  """values[i] + ... + values[j - 1]; no value may be negative."""
  prefix = _Prefix(values)
  return RangeCost(prefix, prefix, prefix)


def First(values: Sequence[float]) -> RangeCost:
  """values[i]."""
  zero = np.zeros(len(values) + 1)
  return RangeCost(zero, -np.append(values, 0.0), zero)


def Last(values: Sequence[float]) -> RangeCost:
  """values[j - 1]."""
  zero = np.zeros(len(values) + 1)
  return RangeCost(np.insert(np.asarray(values, float), 0, 0.0), zero, zero)


def AllButFirst(values: Sequence[float]) -> RangeCost:
  """values[i + 1] + ... + values[j - 1]."""
  prefix = _Prefix(values)
  return RangeCost(
    prefix, prefix + np.append(values, 0.0), np.zeros(len(prefix))
  )


def AllButLast(values: Sequence[float]) -> RangeCost:
  """values[i] + ... + values[j - 2]."""
  prefix = _Prefix(values)
  return RangeCost(
    prefix - np.insert(np.asarray(values, float), 0, 0.0),
    prefix,
    np.zeros(len(prefix)),
  )


def Largest(values: Sequence[float]) -> RangeCost:
  """The largest of values[i:j]."""
  zero = np.zeros(len(values) + 1)
  return RangeCost(
    zero, zero, zero, largest=((1.0, np.asarray(values, np.float64)),)
  )


def Distinct(uses: Sequence[Mapping[str, float]]) -> RangeCost:
  """What cells i, ..., j - 1 use, each thing counted once.

  Args:
    uses: for each cell what it uses, {name: size}; a name's size is the same
      everywhere.

  Returns:
    The sum of the sizes of all names that cells of the range use.
  """
  total = Sum([sum(used.values()) for used in uses])
  # Of two consecutive uses inside the range, one counts too many.
  latest: dict[str, int] = {}
  again = []
  for cell, used in enumerate(uses):
    for name, size in used.items():
      if name in latest:
        again.append((latest[name], cell, size))
      latest[name] = cell
  if not again:
    return total
  from_cell, to_cell, crossing = _Pairs(again, len(uses))
  # Pairs inside = those that end before j, but for those that begin before i,
  # where pairs across the whole range are in neither.
  return RangeCost(
    total.ends - to_cell,
    total.starts - from_cell,
    np.zeros(len(uses) + 1),
    crossing=((1.0, crossing),),
  )


def Outgoing(pairs: Iterable[tuple[int, int, float]], num_cells: int) -> RangeCost:
  """Connections that begin inside a range and end behind it.

  Args:
    pairs: (cell, later cell, size).
    num_cells: of the whole list.

  Returns:
    The sum of their sizes.
  """
  return _OneEnd(list(pairs), num_cells, outgoing=True)


def Incoming(pairs: Iterable[tuple[int, int, float]], num_cells: int) -> RangeCost:
  """Connections that begin before a range and end inside; see Outgoing."""
  return _OneEnd(list(pairs), num_cells, outgoing=False)


def _OneEnd(
  pairs: list[tuple[int, int, float]], num_cells: int, *, outgoing: bool
) -> RangeCost:
  zero = np.zeros(num_cells + 1)
  if not pairs:
    return Zero(num_cells)
  from_cell, to_cell, crossing = _Pairs(pairs, num_cells)
  # Open at a border: begun before it, not yet ended.
  is_open = from_cell - to_cell
  crossing = ((1.0, crossing),)
  if outgoing:
    return RangeCost(is_open, zero, zero, crossing=crossing)
  return RangeCost(zero, -is_open, zero, crossing=crossing)


def _Pairs(
  pairs: Sequence[tuple[int, int, float]], num_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Sums over pairs (a, b, size).

  Args:
    pairs: with a < b.
    num_cells: of the whole list.

  Returns:
    [n + 1]: of those with a < i; [n + 1]: of those with b < i;
    [n + 1, n + 1]: of those with a < i and b >= j.
  """
  first, second, size = (np.array(x) for x in zip(*pairs, strict=True))
  counts = np.zeros([num_cells + 1, num_cells + 1])
  # Entry [i, j] takes what first holds there: a = i - 1 and b = j.
  np.add.at(counts, (first + 1, second), size)
  from_cell = np.cumsum(counts.sum(axis=1))
  to_cell = np.zeros(num_cells + 1)
  to_cell[1:] = np.cumsum(counts.sum(axis=0))[:-1]
  np.cumsum(counts, axis=0, out=counts)
  reverse = counts[:, ::-1]
  np.cumsum(reverse, axis=1, out=reverse)
  return from_cell, to_cell, counts


def _Prefix(values: Sequence[float]) -> np.ndarray:
  return np.concatenate(([0.0], np.cumsum(np.asarray(values, np.float64))))


def _Slice(numbers: range) -> slice:
  return slice(numbers.start, numbers.stop)


def _Merged(terms: tuple) -> tuple:
  """Adds up the factors of terms with the same array."""
  merged = {}
  for factor, array in terms:
    before, _ = merged.get(id(array), (0.0, None))
    merged[id(array)] = (before + factor, array)
  return tuple(merged.values())


def _Largest(values: np.ndarray, starts: range, ends: range) -> np.ndarray:
  """max(values[i:j]) for i < j, [len(ends), len(starts)]."""
  first, stop = starts.start, max(starts.stop, ends.stop - 1)
  cells = np.arange(first, stop)
  inside = cells[None, :] < np.arange(ends.start, ends.stop)[:, None]
  masked = np.where(inside, values[None, first:stop], -np.inf)
  backward = masked[:, ::-1]
  np.maximum.accumulate(backward, axis=1, out=backward)
  return np.maximum(masked[:, : len(starts)], values.min())
