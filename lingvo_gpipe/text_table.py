"""Tables of text: rows as lines, with columns two blanks apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def Aligned(
  rows: Sequence[Sequence[str]], left: Collection[int] = ()
) -> list[str]:
  """Aligns the columns of some rows.

  Args:
    rows: the heading first.
    left: columns of names; the others are aligned to the right.

  Returns:
    A line for each row.
  """
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    '  '.join(
      cell.ljust(width) if i in left else cell.rjust(width)
      for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()
    for row in rows
  ]
