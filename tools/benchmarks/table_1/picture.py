"""Table 1 as a picture: parameters of the largest model, setting by setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.benchmarks.paper import output

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib

_WIDTH = 0.4  # of a bar


def Draw(sections: Sequence[output.Section]) -> figure_lib.Figure:
  """Draws the sections side by side.

  Args:
    sections: of the tool.

  Returns:
    The figure.
  """
  return output.Panels(sections, _DrawPanel)


def _DrawPanel(axes: axes_lib.Axes, section: output.Section) -> None:
  places = range(len(section.rows))
  ours = [row.get('params') or 0 for row in section.rows]
  paper = [row.get('paper_params') for row in section.rows]
  name = 'by arithmetic' if any(paper) else 'measured'
  axes.bar(places, ours, _WIDTH, color=output.COLORS[0], label=name)
  if any(paper):
    axes.bar(
      [place + _WIDTH for place in places],
      paper,
      _WIDTH,
      color=output.PAPER_COLOR,
      label='paper',
    )
  axes.set_yscale('log')
  axes.set_xticks(
    places,
    [row['setting'].replace('-', '\n') for row in section.rows],
    fontsize=8,
  )
  axes.set_ylabel('parameters')
  axes.grid(axis='y', alpha=0.3)
  axes.legend(fontsize=8)
