"""Table 3 as a picture: throughput over K, a line for each link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.benchmarks.paper import output

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib


def Draw(sections: Sequence[output.Section]) -> figure_lib.Figure:
  """Draws the sections side by side.

  Args:
    sections: of the tool.

  Returns:
    The figure.
  """
  return output.Panels(sections, _DrawPanel)


def _DrawPanel(axes: axes_lib.Axes, section: output.Section) -> None:
  is_measured = section.name == 'workers'
  links = list(dict.fromkeys(row.get('bandwidth') for row in section.rows))
  for link, color in zip(links, output.COLORS, strict=False):
    rows = [row for row in section.rows if row.get('bandwidth') == link]
    counts = [row['num_devices'] for row in rows]
    name = 'no time' if link is None else f'{link / 1e6:.0f} Mbit/s'
    key = 'speedup' if is_measured else 'relative'
    axes.plot(
      counts,
      [row[key] for row in rows],
      color=color,
      marker='o',
      label=f'{name}, simulated',
    )
    if is_measured:
      axes.plot(
        counts,
        [row['measured_speedup'] for row in rows],
        color=color,
        marker='x',
        linestyle='--',
        label=f'{name}, measured',
      )
  paper = [row for row in section.rows if row.get('paper') is not None]
  if paper:
    axes.plot(
      [row['num_devices'] for row in paper],
      [row['paper'] for row in paper],
      color=output.PAPER_COLOR,
      linestyle=':',
      label='paper',
    )
  counts = sorted({row['num_devices'] for row in section.rows})
  axes.set_xticks(counts)
  axes.set_xlabel('devices K')
  axes.set_ylabel('speed-up over K=1' if is_measured else 'throughput')
  axes.grid(alpha=0.3)
  axes.legend(fontsize=7)
