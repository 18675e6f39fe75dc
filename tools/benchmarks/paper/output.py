"""What a tool for a table of the paper leaves: text, JSON, a picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import flags

from tools.benchmarks import report

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib

OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'A folder for the tables as JSON and the picture as PNG; made if it is not '
  'there.',
)

# Of the palette of Okabe and Ito, which people with any kind of colour vision
# can tell apart.
COLORS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9')
PAPER_COLOR = '#888888'

DPI = 120
_PANEL = 4.6, 3.6  # inches


class Section(NamedTuple):
  """A table with what has to be said of it.

  Attributes:
    name: a word, in JSON.
    heading: a line above the table.
    columns: of report.Table.
    rows: of report.Table.
  """

  name: str
  heading: str
  columns: Sequence[report.Column]
  rows: Sequence[Mapping[str, Any]]

  def ToText(self) -> str:
    """The heading and the table."""
    return f'{self.heading}\n\n{report.Table(self.columns, self.rows)}\n'


def Write(
  name: str,
  sections: Sequence[Section],
  draw: Callable[[Sequence[Section]], figure_lib.Figure],
  **settings: Any,
) -> None:
  """Prints all sections, and writes files where --output_dir is given.

  Args:
    name: of the files.
    sections: what was found.
    draw: makes the picture.
    **settings: further entries of the JSON file.
  """
  for section in sections:
    print(section.ToText(), flush=True)
  if OUTPUT_DIR.value is None:
    return
  folder = os.path.join(
    os.environ.get('BUILD_WORKING_DIRECTORY', ''), OUTPUT_DIR.value
  )
  path = os.path.join(folder, name)
  report.WriteJson(
    f'{path}.json',
    [{'section': s.name, **row} for s in sections for row in s.rows],
    **settings,
  )
  draw(sections).savefig(f'{path}.png', format='png')
  report.Progress(f'{path}.json, {path}.png')


def Panels(
  sections: Sequence[Section],
  draw: Callable[[axes_lib.Axes, Section], None],
) -> figure_lib.Figure:
  """Draws sections side by side.

  Args:
    sections: each in a panel of its own, under its name.
    draw: called with the panel and its section.

  Returns:
    The figure.
  """
  figure = Figure(_PANEL[0] * len(sections), _PANEL[1])
  panels = figure.subplots(1, len(sections), squeeze=False)[0]
  for axes, section in zip(panels, sections, strict=True):
    draw(axes, section)
    axes.set_title(section.name.rpartition(': ')[2], fontsize=10)
  return figure


def Figure(width: float, height: float) -> figure_lib.Figure:
  """A figure apart from pyplot's: nothing keeps it, no display is needed.

  Args:
    width: inches.
    height: inches.

  Returns:
    The figure.
  """
  from matplotlib import figure as figure_lib
  from matplotlib.backends import backend_agg

  figure = figure_lib.Figure(
    figsize=(width, height), dpi=DPI, facecolor='white', layout='constrained'
  )
  backend_agg.FigureCanvasAgg(figure)
  return figure
