"""How translations differ from a baseline, as a picture by amount of data.

In the manner of the GPipe paper's Figure 3: languages along the x axis, those
with most training data to the left, and how much better than the baseline the
translations are on the y axis; in chrF here. From and into English have a panel
each. Means of the groups of languages are horizontal lines. A hollow mark is of
too few sentences to say much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.mt import data_amounts
from tools.mt import score_report

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib

# Of the palette of Okabe and Ito: sky blue, vermilion.
_BETTER, _WORSE = '#0072b2', '#d55e00'
_SHADES = ('#f1f1f1', '#ffffff', '#f1f1f1')

DPI = 120

# Inches.
_SLOT_WIDTH, _MIN_WIDTH, _MAX_WIDTH = 0.14, 7.0, 26.0
_PANEL_HEIGHT = 3.4
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.8, 0.25, 0.95, 0.85

_FONT_SIZE = 9  # points


def WritePng(
  directions: Sequence[score_report.Direction],
  baseline: str,
  path: str,
  *,
  min_sentences: int,
) -> None:
  """Draws a report into a file.

  Args:
    directions: of the report.
    baseline: what to compare with; directions without it are left out.
    path: of the PNG file to write.
    min_sentences: directions with fewer have hollow marks.

  Raises:
    OSError: where the file cannot be written.
    ValueError: if no direction has the baseline.
  """
  figure = Draw(directions, baseline, min_sentences=min_sentences)
  figure.savefig(path, format='png')


def Draw(
  directions: Sequence[score_report.Direction],
  baseline: str,
  *,
  min_sentences: int,
) -> figure_lib.Figure:
  """Draws a report.

  Args:
    directions: see WritePng.
    baseline: likewise.
    min_sentences: likewise.

  Returns:
    The figure, apart from pyplot's: nothing keeps it, and no display is needed.
  """
  from matplotlib import figure as figure_lib
  from matplotlib.backends import backend_agg

  kinds = score_report.ByKind(
    [x for x in directions if baseline in x.baselines]
  )
  if not kinds:
    raise ValueError(f'no direction has the baseline {baseline!r}')
  most = max(map(len, kinds.values()))
  width = min(max(_MIN_WIDTH, _SLOT_WIDTH * most), _MAX_WIDTH)
  size = (
    _LEFT + width + _RIGHT,
    len(kinds) * (_TOP + _PANEL_HEIGHT + _BOTTOM),
  )
  figure = figure_lib.Figure(figsize=size, dpi=DPI, facecolor='white')
  backend_agg.FigureCanvasAgg(figure)
  for i, (kind, members) in enumerate(kinds.items()):
    top = size[1] - i * (_TOP + _PANEL_HEIGHT + _BOTTOM) - _TOP
    axes = figure.add_axes(
      (
        _LEFT / size[0],
        (top - _PANEL_HEIGHT) / size[1],
        width / size[0],
        _PANEL_HEIGHT / size[1],
      )
    )
    axes.set_title(
      f'Translations {kind}: chrF compared with {baseline}',
      fontsize=_FONT_SIZE + 2,
      fontweight='bold',
      loc='left',
      pad=30,
    )
    _DrawGroups(axes, members, baseline)
    _DrawMarks(axes, members, baseline, min_sentences)
    _SetUpAxes(axes, members, width * 72 / len(members))
  return figure


def _DrawGroups(
  axes: axes_lib.Axes,
  members: Sequence[score_report.Direction],
  baseline: str,
) -> None:
  """Shades the groups of languages, with their means."""
  means = score_report.Means(members)
  for shade, amount in zip(_SHADES, data_amounts.AMOUNTS, strict=True):
    places = [i for i, x in enumerate(members) if x.amount == amount]
    if not places:
      continue
    left, right = places[0] - 0.5, places[-1] + 0.5
    axes.axvspan(left, right, facecolor=shade, linewidth=0, zorder=0)
    mean = means[amount][f'{baseline}_difference']
    axes.plot([left, right], [mean, mean], color='#555555', zorder=1)
    pairs = [members[i].training_pairs for i in (places[-1], places[0])]
    span = ' to '.join(f'{x:,}' for x in dict.fromkeys(pairs))
    axes.text(
      (left + right) / 2,
      1.02,
      f'{amount}, {span} pairs\nmean {mean:+.1f}',
      transform=axes.get_xaxis_transform(),
      fontsize=_FONT_SIZE - 2,
      horizontalalignment='center',
      verticalalignment='bottom',
    )


def _DrawMarks(
  axes: axes_lib.Axes,
  members: Sequence[score_report.Direction],
  baseline: str,
  min_sentences: int,
) -> None:
  values = [x.baselines[baseline].difference for x in members]
  colors = [_WORSE if x < 0 else _BETTER for x in values]
  fills = [
    'white' if x.score.sentences < min_sentences else color
    for x, color in zip(members, colors, strict=True)
  ]
  places = range(len(members))
  axes.vlines(places, 0, values, colors=colors, linewidth=1, zorder=2)
  axes.scatter(
    places, values, s=14, c=fills, edgecolors=colors, linewidths=1, zorder=3
  )


def _SetUpAxes(
  axes: axes_lib.Axes,
  members: Sequence[score_report.Direction],
  slot_points: float,
) -> None:
  axes.axhline(0, color='black', linewidth=0.8, zorder=1)
  axes.set_xlim(-0.5, len(members) - 0.5)
  axes.set_xticks(
    range(len(members)),
    [x.language for x in members],
    rotation=90,
    fontsize=max(2.0, min(_FONT_SIZE - 1, slot_points * 0.75)),
  )
  axes.tick_params(axis='x', length=2, pad=1)
  axes.tick_params(axis='y', labelsize=_FONT_SIZE - 1)
  axes.set_ylabel('difference of chrF', fontsize=_FONT_SIZE)
  axes.set_xlabel(
    'languages, from most to fewest training pairs', fontsize=_FONT_SIZE
  )
  axes.grid(axis='y', color='#dddddd', linewidth=0.6, zorder=0.5)
  axes.set_axisbelow(True)
  for side in ('top', 'right'):
    axes.spines[side].set_visible(False)
