"""Packing: which sentences share a row.

Sentences are short and rows long, so one sentence a row is mostly padding. The
rows are made once; training then takes whole rows, in a new order each time.
"""

from __future__ import annotations

import numpy as np


def Pack(
  source_lengths: np.ndarray, target_lengths: np.ndarray, row_length: int
) -> np.ndarray:
  """Best fit, the longest sentences first.

  Args:
    source_lengths: int [pairs], 1 to row_length.
    target_lengths: likewise.
    row_length: ids that a row has room for, on each side.

  Returns:
    int64 [pairs], the row that each is in; rows count from 0.
  """
  longer = np.maximum(source_lengths, target_lengths)
  rows = np.zeros(len(longer), np.int64)
  # Rows by the room they have left on both sides, and the amounts of room of
  # which there are any, as bits of a number.
  by_room: list[list[tuple[int, int, int]]] = [
    [] for _ in range(row_length + 1)
  ]
  present = 0
  num_rows = 0
  sources, targets, sizes = (
    x.tolist() for x in (source_lengths, target_lengths, longer)
  )
  for i in np.argsort(-longer, kind='stable').tolist():
    fitting = present >> sizes[i]
    if fitting:
      room = sizes[i] + (fitting & -fitting).bit_length() - 1
      row, source_room, target_room = by_room[room].pop()
      if not by_room[room]:
        present &= ~(1 << room)
    else:
      row, source_room, target_room = num_rows, row_length, row_length
      num_rows += 1
    rows[i] = row
    left = (row, source_room - sources[i], target_room - targets[i])
    room = min(left[1:])
    by_room[room].append(left)
    present |= 1 << room
  return rows
