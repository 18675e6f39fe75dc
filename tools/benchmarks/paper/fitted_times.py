"""Times of cells for micro-batches of any size, from two that were measured.

A cell takes so long for each example, and something beside. That holds where a
micro-batch keeps the processor busy, which is not the case of tiny ones: so the
smaller of the two should be about the smallest that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lingvo_gpipe.gpipe.planning import partition


def Fit(
  measured: Mapping[int, Sequence[partition.CellTime]], sizes: Iterable[int]
) -> dict[int, list[partition.CellTime]]:
  """Reads lines through two measurements off at other sizes.

  Args:
    measured: {examples of a micro-batch: times of all cells}, of two sizes.
    sizes: what is asked for.

  Returns:
    {size: times}; measured ones where there are any. No time is shorter than
    its share of the smaller measurement, by examples, nor shrinks with size.

  Raises:
    ValueError: where measured does not have two sizes.
  """
  if len(measured) != 2:
    raise ValueError(
      f'times of two sizes of micro-batches are needed, not {len(measured)}'
    )
  (small, fast), (large, slow) = sorted(measured.items())

  def _At(size: int, a: float, b: float) -> float:
    slope = max(0.0, (b - a) / (large - small))
    return max(a + slope * (size - small), a * min(1.0, size / small))

  return {
    size: list(measured[size])
    if size in measured
    else [
      partition.CellTime(
        _At(size, a.forward, b.forward), _At(size, a.backward, b.backward)
      )
      for a, b in zip(fast, slow, strict=True)
    ]
    for size in sizes
  }
