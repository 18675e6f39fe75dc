"""A recorded step as a picture, in the manner of the paper's Figure 2.

A lane is a device, time runs to the right, a box is a pass: F is forward, R
recomputation, B backward, with the partition and the micro-batch as its index,
or as much of that as there is room for. Idle time is hatched.

Colours are from the palette of Okabe and Ito, which people with any kind of
colour vision can tell apart. The partitions of a device have shades of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lingvo_gpipe.gpipe.timelines import box_labels, timeline_text
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

if TYPE_CHECKING:  # Slow to import, and nobody needs it who draws nothing.
  from matplotlib import axes as axes_lib
  from matplotlib import figure as figure_lib

_COLORS = {
  timeline_lib.FORWARD: (0x56, 0xB4, 0xE9),  # sky blue
  timeline_lib.RECOMPUTE: (0xF0, 0xE4, 0x42),  # yellow
  timeline_lib.BACKWARD: (0xD5, 0x5E, 0x00),  # vermilion
}
_IDLE, _HATCH = '#fafafa', '//////'

DPI = 120

# Inches.
_SLOT_WIDTH = 0.3  # what a pass gets on average, within the next two limits
_MIN_WIDTH, _MAX_WIDTH = 9.0, 26.0  # of the lanes
_LANE_HEIGHT = 0.6
_LEFT, _RIGHT, _TOP, _BOTTOM = 1.35, 0.85, 0.9, 0.7  # margins
_LINE_HEIGHT = 0.17  # of the caption

_BOX_HEIGHT = 0.82  # of a lane's
_FONT_SIZE = 9  # points


def WritePng(timeline: timeline_lib.Timeline, path: str) -> None:
  """Draws a step into a file.

  Args:
    timeline: of the step.
    path: of the PNG file to write.
  """
  Draw(timeline).savefig(path, format='png')


def Draw(timeline: timeline_lib.Timeline) -> figure_lib.Figure:
  """Draws a step.

  Args:
    timeline: of the step.

  Returns:
    The figure, apart from pyplot's: nothing keeps it, and no display is needed.
  """
  from matplotlib import figure as figure_lib
  from matplotlib.backends import backend_agg

  num_lanes = timeline.num_devices
  slots = len(timeline.events) / num_lanes / max(1e-9, 1 - timeline.bubble)
  width = min(max(_MIN_WIDTH, _SLOT_WIDTH * slots), _MAX_WIDTH)
  height = _LANE_HEIGHT * num_lanes
  caption = _Caption(timeline)
  bottom = _BOTTOM + _LINE_HEIGHT * len(caption)
  size = _LEFT + width + _RIGHT, _TOP + height + bottom
  figure = figure_lib.Figure(figsize=size, dpi=DPI, facecolor='white')
  backend_agg.FigureCanvasAgg(figure)
  axes = figure.add_axes(
    (
      _LEFT / size[0],
      bottom / size[1],
      width / size[0],
      height / size[1],
    )
  )
  factor, unit = (1, 's') if timeline.step_seconds >= 1 else (1e3, 'ms')
  _DrawLanes(axes, timeline, factor)
  _DrawBoxes(axes, timeline, factor)
  _DrawLabels(axes, timeline, factor, width * 72)
  _SetUpAxes(axes, timeline, factor, unit)
  _Write(figure, timeline, size, caption)
  return figure


def _Chunks(timeline: timeline_lib.Timeline) -> list[tuple[int, int]]:
  """For each partition which one of how many it is on its device."""
  return [
    (timeline.devices[:k].count(device), timeline.devices.count(device))
    for k, device in enumerate(timeline.devices)
  ]


def Color(kind: str, chunk: int = 0, num_chunks: int = 1) -> np.ndarray:
  """The colour of a box.

  Args:
    kind: of the pass.
    chunk: which of the device's partitions.
    num_chunks: how many it has.

  Returns:
    [3], red, green and blue from 0 to 1; later chunks are darker.
  """
  color = np.array(_COLORS[kind]) / 255
  if num_chunks == 1:
    return color
  # From half way to white, to a third of the way to black.
  shade = chunk / (num_chunks - 1)
  if shade < 0.6:
    return color + (1 - color) * 0.5 * (1 - shade / 0.6)
  return color * (1 - 0.33 * (shade - 0.6) / 0.4)


def _DrawLanes(
  axes: axes_lib.Axes, timeline: timeline_lib.Timeline, factor: float
) -> None:
  from matplotlib import patches

  for lane in range(timeline.num_devices):
    axes.add_patch(
      patches.Rectangle(
        (0, lane - _BOX_HEIGHT / 2),
        timeline.step_seconds * factor,
        _BOX_HEIGHT,
        facecolor=_IDLE,
        edgecolor='#d8d8d8',
        linewidth=0,
        hatch=_HATCH,
        zorder=1,
      )
    )


def _DrawBoxes(
  axes: axes_lib.Axes, timeline: timeline_lib.Timeline, factor: float
) -> None:
  from matplotlib import collections as collections_lib

  chunks = _Chunks(timeline)
  corners, colors = [], []
  for event in timeline.events:
    lane = timeline.device_names.index(event.device)
    left, right = event.start * factor, event.end * factor
    low, high = lane - _BOX_HEIGHT / 2, lane + _BOX_HEIGHT / 2
    corners.append([(left, low), (left, high), (right, high), (right, low)])
    colors.append(Color(event.kind, *chunks[event.partition]))
  axes.add_collection(
    collections_lib.PolyCollection(
      corners, facecolors=colors, edgecolors='white', linewidths=0.6, zorder=2
    )
  )


def _DrawLabels(
  axes: axes_lib.Axes,
  timeline: timeline_lib.Timeline,
  factor: float,
  width_points: float,
) -> None:
  chunks = _Chunks(timeline)
  for event, text, size in box_labels.Labels(
    timeline.events, width_points / timeline.step_seconds
  ):
    axes.text(
      (event.start + event.end) / 2 * factor,
      timeline.device_names.index(event.device),
      text,
      fontsize=size,
      color=_TextColor(Color(event.kind, *chunks[event.partition])),
      horizontalalignment='center',
      verticalalignment='center_baseline',
      zorder=3,
    )


def _TextColor(background: np.ndarray) -> str:
  luminance = float(background @ (0.299, 0.587, 0.114))
  return 'black' if luminance > 0.5 else 'white'


def _SetUpAxes(
  axes: axes_lib.Axes,
  timeline: timeline_lib.Timeline,
  factor: float,
  unit: str,
) -> None:
  names = timeline_text.ShortNames(timeline.devices)
  labels = []
  for lane, device in enumerate(timeline.device_names):
    partitions = [k for k, d in enumerate(timeline.devices) if d == device]
    plural = 's' if len(partitions) > 1 else ''
    labels.append(
      f'{names[device]}\npartition{plural} {", ".join(map(str, partitions))}'
    )
    axes.text(
      1.008,
      lane,
      f'busy {timeline.busy_seconds[device] / timeline.step_seconds:.0%}',
      transform=axes.get_yaxis_transform(),
      fontsize=_FONT_SIZE - 1,
      verticalalignment='center',
    )
  axes.set_yticks(range(len(labels)), labels, fontsize=_FONT_SIZE - 1)
  axes.set_ylim(timeline.num_devices - 0.5, -0.5)
  axes.set_xlim(0, timeline.step_seconds * factor)
  axes.set_xlabel(f'time ({unit})', fontsize=_FONT_SIZE)
  axes.tick_params(axis='x', labelsize=_FONT_SIZE - 1)
  axes.tick_params(axis='y', length=0)
  for side in ('top', 'right', 'left'):
    axes.spines[side].set_visible(False)


def _Caption(timeline: timeline_lib.Timeline) -> list[str]:
  """The lines below the picture."""
  lines = [
    f'Step: {timeline_text.Seconds(timeline.step_seconds)}. '
    f'{timeline_text.BubbleText(timeline)}'
  ]
  if timeline.num_devices < timeline.num_partitions:
    lines.append("Shades: a device's partitions, from light to dark.")
  return lines + timeline_text.ClockText(timeline)


def _Write(
  figure: figure_lib.Figure,
  timeline: timeline_lib.Timeline,
  size: tuple[float, float],
  caption: Sequence[str],
) -> None:
  """Title, legend and caption."""
  from matplotlib import legend_handler, patches

  left = _LEFT / size[0]
  figure.text(
    left,
    1 - 0.3 / size[1],
    timeline_text.Heading(timeline),
    fontsize=_FONT_SIZE + 2,
    fontweight='bold',
    verticalalignment='center',
  )
  num_chunks = max(count for _, count in _Chunks(timeline))
  handles, labels = [], []
  for kind in timeline_lib.KINDS:
    if any(event.kind == kind for event in timeline.events):
      colors = [Color(kind, chunk, num_chunks) for chunk in range(num_chunks)]
      handles.append(tuple(patches.Patch(facecolor=c) for c in colors))
      labels.append(f'{kind} ({box_labels.LETTERS[kind]})')
  handles.append(
    patches.Patch(facecolor=_IDLE, edgecolor='#c0c0c0', hatch=_HATCH)
  )
  labels.append('idle')
  figure.legend(
    handles,
    labels,
    handler_map={tuple: legend_handler.HandlerTuple(ndivide=None, pad=0)},
    loc='center left',
    bbox_to_anchor=(left, 1 - 0.63 / size[1]),
    ncols=len(handles),
    frameon=False,
    fontsize=_FONT_SIZE,
    handlelength=1.2 + 0.6 * num_chunks,
    borderaxespad=0,
    borderpad=0,
  )
  figure.text(
    left,
    (0.1 + _LINE_HEIGHT * len(caption)) / size[1],
    '\n'.join(caption),
    fontsize=_FONT_SIZE,
    verticalalignment='top',
  )
