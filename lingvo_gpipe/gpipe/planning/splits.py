"""Cuts by hand: what the param `splits` says."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np


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
