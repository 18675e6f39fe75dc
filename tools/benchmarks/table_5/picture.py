"""Table 5 as a picture: loss and score over the size of mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.benchmarks.paper import output

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib


def Draw(sections: Sequence[output.Section]) -> figure_lib.Figure:
  """Draws the paper's figures to the left and ours to the right.

  Args:
    sections: of the tool, the paper's first.

  Returns:
    The figure.
  """
  return output.Panels(sections, _DrawPanel)


def _DrawPanel(axes: axes_lib.Axes, section: output.Section) -> None:
  tokens = [row['tokens'] for row in section.rows]
  score = 'bleu' if section.name == 'paper' else 'chrf'
  axes.plot(
    *(tokens, [row['nll'] for row in section.rows]),
    **{'color': output.COLORS[1], 'marker': 'o'},
  )
  axes.set_xscale('log', base=4)
  axes.set_xticks(tokens, [f'{t:,.0f}' for t in tokens])
  axes.minorticks_off()
  axes.set_xlabel('tokens of a mini-batch')
  axes.set_ylabel('nats per token', color=output.COLORS[1])
  if all(row.get(score) is not None for row in section.rows):
    other = axes.twinx()
    other.plot(
      *(tokens, [row[score] for row in section.rows]),
      **{'color': output.COLORS[0], 'marker': 's', 'linestyle': '--'},
    )
    name = {'bleu': 'BLEU', 'chrf': 'chrF'}[score]
    other.set_ylabel(name, color=output.COLORS[0])
