"""The breakdown as a picture: a bar for each pipeline, the paper's on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.benchmarks.overhead import breakdown
from tools.benchmarks.paper import output

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import figure as figure_lib

_WIDTH, _BAR_HEIGHT, _MARGIN = 9.0, 0.45, 1.3  # inches
_COLORS = (*output.COLORS, output.PAPER_COLOR)


def Draw(sections: Sequence[output.Section]) -> figure_lib.Figure:
  """Draws the rows of all sections.

  Args:
    sections: of the tool.

  Returns:
    The figure.
  """
  rows = [row for section in sections for row in section.rows]
  figure = output.Figure(_WIDTH, _MARGIN + _BAR_HEIGHT * len(rows))
  axes = figure.subplots()
  names = [row['name'] for row in rows]
  left = [0.0] * len(rows)
  for part, color in zip(breakdown.PARTS, _COLORS, strict=True):
    shares = [100 * (row.get(part) or 0.0) for row in rows]
    axes.barh(names, shares, left=left, color=color, label=part)
    left = [a + b for a, b in zip(left, shares, strict=True)]
  axes.invert_yaxis()
  axes.set_xlim(0, 100)
  axes.set_xlabel("% of the devices' time")
  axes.legend(ncols=4, fontsize=8, loc='lower left', bbox_to_anchor=(0, 1.02))
  return figure
