"""Labels of the boxes of a timeline's picture, as far as there is room.

The fullest form is the paper's: F with partition and micro-batch as its index.
Where lanes are crowded it is F and the micro-batch, then the micro-batch alone,
then nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

LETTERS = {kind: kind[0].upper() for kind in timeline_lib.KINDS}

# Points, from the best to the smallest one that can be read.
_FONT_SIZES = (9, 8, 7)

# Widths in parts of the font size, and the margin of a box in points.
_LETTER_WIDTH = 0.66
_SUBSCRIPT = 0.7  # of a letter
_MARGIN = 2

# A form is used if it fits into so many of a kind's boxes.
_FITTING = 0.8


def Labels(
  events: Sequence[timeline_lib.Event], points: float
) -> Iterator[tuple[timeline_lib.Event, str, float]]:
  """Chooses labels.

  All have one form, the fullest for which every kind has room.
  Kinds whose boxes are too narrow even for the shortest form have none.

  Args:
    events: to be labelled.
    points: width of a second.

  Yields:
    (event, text, font size) of each event whose box is wide enough.
  """
  best = {}
  for kind in timeline_lib.KINDS:
    of_kind = [e for e in events if e.kind == kind]
    form = _BestForm(of_kind, points) if of_kind else None
    if form is not None:
      best[kind] = form
  form = max(best.values(), default=None)
  for event in events:
    if event.kind in best:
      text, num_letters = _FORMS[form](event)
      size = _FontSize(num_letters, event.seconds * points)
      if size is not None:
        yield event, text, size


def _BestForm(
  events: Sequence[timeline_lib.Event], points: float
) -> int | None:
  """The index of the fullest form for which there is room, if any."""
  for i, form in enumerate(_FORMS):
    fits = [
      _FontSize(form(event)[1], event.seconds * points) is not None
      for event in events
    ]
    if np.mean(fits) >= _FITTING:
      return i
  return None


def _FontSize(num_letters: float, width: float) -> float | None:
  """The best size at which letters fit into `width` points."""
  for size in _FONT_SIZES:
    if _LETTER_WIDTH * size * num_letters + _MARGIN <= width:
      return size
  return None


def _FullLabel(event: timeline_lib.Event) -> tuple[str, float]:
  """A label, and its width in letters."""
  # Braces around the comma: no space after it.
  text = (
    f'${LETTERS[event.kind]}_{{{event.partition}{{,}}{event.micro_batch}}}$'
  )
  index = f'{event.partition},{event.micro_batch}'
  return text, 1 + _SUBSCRIPT * len(index)


def _ShortLabel(event: timeline_lib.Event) -> tuple[str, float]:
  text = f'{LETTERS[event.kind]}{event.micro_batch}'
  return text, len(text)


def _BareLabel(event: timeline_lib.Event) -> tuple[str, float]:
  text = str(event.micro_batch)
  return text, len(text)


_FORMS = (_FullLabel, _ShortLabel, _BareLabel)
