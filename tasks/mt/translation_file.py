"""Files of translations: what a decoder writes and scores are made of.

A file has a line of JSON for each sentence of a split, in UTF-8,

  {"group": "de", "source_language": "en", "target_language": "de", "index": 17,
   "source": "...", "reference": "...", "translation": "...", "score": -1.2}

on one line, with other keys passed over. `group` is the direction as
record_files.py names it, `index` the line of the group's raw text (test.de.tsv
has index 0 first), and `score` what the translator itself says of its work, or
null.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable
from typing import Any

from lingvo_gpipe import atomic_file, user_error
from tasks.mt import parallel_text


@dataclasses.dataclass(frozen=True)
class Translation:
  """A sentence, what it should become, and what it became.

  Attributes:
    group: the direction, GroupOf() the two languages.
    source_language: such as en.
    target_language: such as de.
    index: place of the sentence in its group, from 0.
    source: the text.
    reference: its translation by people.
    translation: of the system.
    score: the higher the better, such as a log-probability; None without one.
  """

  group: str
  source_language: str
  target_language: str
  index: int
  source: str
  reference: str
  translation: str
  score: float | None = None


_TEXTS = tuple(
  x.name
  for x in dataclasses.fields(Translation)
  if x.name not in ('index', 'score')
)


def GroupOf(source_language: str, target_language: str) -> str:
  """The name of a direction: de is en->de, de-en de->en, de-fr de->fr."""
  if source_language == parallel_text.ENGLISH:
    return target_language
  return f'{source_language}-{target_language}'


def Write(path: str, rows: Iterable[Translation]) -> None:
  """Writes a file that appears at once, when all of it is written.

  Args:
    path: of the file; its directory exists.
    rows: the translations. A score that is not finite is written as null.

  Raises:
    OSError: where it cannot be written; what was there before stays.
  """
  with atomic_file.Writing(path) as f:
    f.writelines(map(_Line, rows))


def _Line(row: Translation) -> str:
  values = dataclasses.asdict(row)
  if row.score is not None and not math.isfinite(row.score):
    values['score'] = None
  return json.dumps(values, ensure_ascii=False, allow_nan=False) + '\n'


def Read(path: str) -> list[Translation]:
  """Reads a file.

  Args:
    path: of the file.

  Returns:
    Its translations, in the file's order.

  Raises:
    UserError: for a file that cannot be read or is empty, and naming the first
      line that is wrong, or gives a sentence for the second time.
  """
  if not os.path.isfile(path):
    raise user_error.UserError(
      f'there is no file {path}; expected is one that a decoder wrote'
    )
  rows: list[Translation] = []
  places: dict[tuple[str, int], int] = {}
  with (
    user_error.Expected(OSError, UnicodeDecodeError, prefix=f'{path}: '),
    open(path, encoding='utf-8', newline='\n') as f,
  ):
    for number, line in enumerate(f, 1):
      if not line.strip():
        continue
      where = f'{path}, line {number}'
      row = _Parse(line, where)
      first = places.setdefault((row.group, row.index), number)
      if first != number:
        raise user_error.UserError(
          f'{where} is sentence {row.index} of group {row.group}, as line '
          f'{first} is; leave one of them away'
        )
      rows.append(row)
  if not rows:
    raise user_error.UserError(
      f'{path} is empty; expected is a line of JSON for each translation'
    )
  return rows


def _Parse(line: str, where: str) -> Translation:
  try:
    values = json.loads(line)
  except ValueError as e:
    raise user_error.UserError(
      f'{where} is no JSON ({e}); was the file cut off? Translate again'
    ) from e
  if not isinstance(values, dict):
    raise user_error.UserError(
      f'{where} is no JSON object; expected is {{"group": ...}}'
    )
  for name in _TEXTS:
    _Check(isinstance(values.get(name), str), where, name, values, 'a string')
  index, score = values.get('index'), values.get('score')
  _Check(type(index) is int and index >= 0, where, 'index', values, '0 or more')
  is_number = type(score) in (int, float) and math.isfinite(score)
  _Check(score is None or is_number, where, 'score', values, 'a number or null')
  row = Translation(index=index, score=score, **{x: values[x] for x in _TEXTS})
  group = GroupOf(row.source_language, row.target_language)
  if row.group != group:
    raise user_error.UserError(
      f'{where}: group is {row.group!r}, but from {row.source_language} to '
      f'{row.target_language} it must be {group!r}'
    )
  return row


def _Check(
  is_right: bool, where: str, name: str, values: dict[str, Any], expected: str
) -> None:
  if is_right:
    return
  found = f'is {values[name]!r}' if name in values else 'is missing'
  raise user_error.UserError(f'{where}: {name} {found}; it must be {expected}')
