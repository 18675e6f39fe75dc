"""Pairs of a text and its translation, and the plain files that hold them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lingvo_gpipe import user_error

ENGLISH = 'en'

# Datasets have codes of their own with four letters; names of files don't, lest
# news.tsv be a language.
_LANGUAGE = re.compile(r'[a-z]{2,4}(_[A-Za-z0-9]+)*(@[A-Za-z0-9]+)?')
_IN_FILE_NAME = re.compile(r'[a-z]{2,3}([-_@].*)?')
_HEADER = ['source', 'target', 'language']


class Pair(NamedTuple):
  """A text in English and in another language.

  Attributes:
    language: the other one, as Language() gives it.
    source: the English text.
    target: the other one.
    split: 'dev' or 'test' if the data holds the pair out for that, else ''.
  """

  language: str
  source: str
  target: str
  split: str = ''


def IsEnglish(language: str) -> bool:
  """Whether a language is English or a variant of it, such as en_GB."""
  return re.split('[_@]', language)[0] == ENGLISH


def Language(code: str, where: str) -> str:
  """The name of a language as it stands in tags and file names.

  Args:
    code: such as de, pt_BR, pt-BR or sr@latin.
    where: what to look at if it is none, for the message.

  Returns:
    The code with '_' in the place of '-'.

  Raises:
    UserError: for what is no language code, or is English.
  """
  name = code.strip().replace('-', '_')
  if not _LANGUAGE.fullmatch(name):
    raise user_error.UserError(
      f'{where}: {code!r} is no language code; expected is one such as de, '
      'pt_BR or sr@latin'
    )
  if IsEnglish(name):
    raise user_error.UserError(
      f'{where}: {code!r} is English, which is the source of all pairs; the '
      'language to name is that of the target'
    )
  return name


def ReadTsv(path: str) -> Iterator[Pair]:
  """Reads a file with a pair in each line, columns separated by tabs.

  The columns are the English text, its translation, and the language; without
  the third one, the file's name says it: de.tsv or news.de.tsv. A first line
  `source target language` is skipped. Nothing is quoted.

  Args:
    path: of the file.

  Yields:
    The pairs.

  Raises:
    UserError: for a file that cannot be read or is empty, and naming the first
      line that is wrong.
  """
  is_empty = True
  for number, line in enumerate(_Lines(path), 1):
    if not line.strip():
      continue
    columns = line.split('\t')
    where = f'{path}, line {number}'
    if not 2 <= len(columns) <= 3:
      raise user_error.UserError(
        f'{where} has {len(columns)} columns; expected are source, target and, '
        "if the file's name doesn't say it, language, separated by tabs"
      )
    if is_empty and columns == _HEADER[: len(columns)]:
      continue
    is_empty = False
    if len(columns) == 3:
      language = Language(columns[2], where)
    else:
      language = _LanguageOfName(path, where)
    yield Pair(language, *columns[:2])
  _CheckNotEmpty(path, is_empty)


def _LanguageOfName(path: str, where: str) -> str:
  code = os.path.basename(path).removesuffix('.tsv').rpartition('.')[2]
  if not _IN_FILE_NAME.fullmatch(code):
    raise user_error.UserError(
      f'{where} has no third column with the language, and the name of the '
      'file ends in none; add the column, or name the file as in news.de.tsv'
    )
  return Language(code, where)


def ReadFilePair(path: str, english_path: str) -> Iterator[Pair]:
  """Reads two files whose lines belong together, such as x.de and x.en.

  Args:
    path: of the translations; its extension is the language.
    english_path: of the English texts, x.en.

  Yields:
    The pairs.

  Raises:
    UserError: for files that cannot be read, are empty, or have different
      numbers of lines; the last only at the end.
  """
  language = Language(os.path.splitext(path)[1][1:], path)
  counts = [0, 0]
  lines = _Lines(path), _Lines(english_path)
  while True:
    found = [next(x, None) for x in lines]
    for i, line in enumerate(found):
      counts[i] += line is not None
    target, source = found
    if target is None and source is None:
      break
    if target is not None and source is not None:
      yield Pair(language, source, target)
  for name, count in zip((path, english_path), counts, strict=True):
    _CheckNotEmpty(name, not count)
  if counts[0] != counts[1]:
    raise user_error.UserError(
      f'{path} has {counts[0]:,} lines and {english_path} {counts[1]:,}; line '
      'by line they have to be translations of each other'
    )


def PairUp(paths: Sequence[str]) -> list[tuple[str, str]]:
  """Which files belong together.

  Args:
    paths: x.de, x.en, y.fr, y.en: two and two, in any order within a pair.

  Returns:
    [(path, english_path)], as ReadFilePair takes them.

  Raises:
    UserError: where not just one of two is English.
  """
  text = ','.join(paths)
  if len(paths) % 2 or not paths:
    raise user_error.UserError(
      f'--source=pair:{text} names {len(paths)} files; expected are two, or '
      'two and two, as in pair:news.de,news.en'
    )
  pairs = []
  for first, second in zip(paths[::2], paths[1::2], strict=True):
    english = [os.path.splitext(x)[1] == f'.{ENGLISH}' for x in (first, second)]
    if sum(english) != 1:
      raise user_error.UserError(
        f'--source=pair:{text}: just one of {first} and {second} has to be '
        'the English one, and end in .en'
      )
    pairs.append((second, first) if english[0] else (first, second))
  return pairs


def _Lines(path: str) -> Iterator[str]:
  """Lines of a UTF-8 file, which end in \\n or \\r\\n only."""
  with user_error.Expected(OSError, UnicodeDecodeError, prefix=f'{path}: '):
    # Python's other line ends, such as a lone \r, do occur within sentences.
    with open(path, encoding='utf-8-sig', newline='\n') as f:
      for line in f:
        yield line.rstrip('\r\n')


def _CheckNotEmpty(path: str, is_empty: bool) -> None:
  if is_empty:
    raise user_error.UserError(f'{path} is empty; there is nothing to learn')
