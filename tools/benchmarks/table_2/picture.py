"""Table 2 as a picture: throughput over K, a line for each M."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
  micro_batches = list(
    dict.fromkeys(row['num_micro_batches'] for row in section.rows)
  )
  for m, color in zip(micro_batches, output.COLORS, strict=False):
    rows = [row for row in section.rows if row['num_micro_batches'] == m]
    _Line(axes, rows, 'relative', f'M={m}, simulated', color=color, marker='o')
    _Line(axes, rows, 'paper', f'M={m}, paper', color=color, linestyle=':')
    _Line(
      *(axes, rows, 'measured_relative', f'M={m}, measured'),
      **{'color': color, 'linestyle': '--', 'marker': 'x'},
    )
  axes.set_xscale('log', base=2)
  counts = sorted({row['num_devices'] for row in section.rows})
  if counts[-1] > 8:
    axes.set_yscale('log', base=2)
  axes.set_xticks(counts, [str(k) for k in counts])
  axes.minorticks_off()
  axes.set_xlabel('devices K')
  axes.set_ylabel('throughput, relative')
  axes.grid(alpha=0.3)
  axes.legend(fontsize=7)


def _Line(
  axes: axes_lib.Axes,
  rows: Sequence[Mapping[str, Any]],
  key: str,
  label: str,
  **style: Any,
) -> None:
  points = [
    (row['num_devices'], row[key]) for row in rows if row.get(key) is not None
  ]
  if points:
    axes.plot(*zip(*points, strict=True), label=label, **style)
