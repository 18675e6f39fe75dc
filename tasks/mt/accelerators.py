"""Accelerators: the marks of keys in texts of menus, such as E&xit or _File."""

from __future__ import annotations

import re

from tasks.mt import placeholders

# Scripts without the letter have the mark in brackets: 終了(&X).
_BRACKETS = r'\s*\({mark}\w\)'
# Not 'R&D', nor '&amp;', nor '&&', which is shown as one.
_AMPERSAND = re.compile(
  _BRACKETS.format(mark='&') + r'|(?<!&)&(?=\w)(?!#?\w+;)(?!(?<=[A-Z]&)[A-Z])'
)
_UNDERSCORE = re.compile(_BRACKETS.format(mark='_') + r'|_(?=[^\W_])')

# E_xit and _Save..., but not dir/file_name.html.
_PLAIN_WORD = re.compile(r'[^\W\d_]*_[^\W\d_]+[.,:!?…]*')


def Remove(source: str, target: str) -> tuple[str, str]:
  """Removes the mark of an accelerator from a text and its translation.

  Only what looks like one is touched. An original has a single mark, and its
  translation too, or none if the mark is `&`. Names that happen to have a mark,
  such as file_name, are the same in both.

  Args:
    source: the original.
    target: its translation.

  Returns:
    (source, target).
  """
  if '&' not in source and '_' not in source:  # Nearly always.
    return source, target
  marks = _Spans(_AMPERSAND, source), _Spans(_AMPERSAND, target)
  if len(marks[0]) == 1 and len(marks[1]) <= 1:
    source, target = map(_Cut, (source, target), marks)
  marks = _Spans(_UNDERSCORE, source), _Spans(_UNDERSCORE, target)
  if len(marks[0]) == len(marks[1]) == 1:
    words = [x for x in source.split() if '_' in placeholders.Without(x)]
    is_name = words[0] in target and not words[0].startswith('_')
    if _PLAIN_WORD.fullmatch(words[0]) and not is_name:
      source, target = map(_Cut, (source, target), marks)
  return source, target


def _Spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
  plain = placeholders.Without(text)
  return [x.span() for x in pattern.finditer(plain)]


def _Cut(text: str, spans: list[tuple[int, int]]) -> str:
  for start, end in spans:
    text = text[:start] + text[end:]
  return text
