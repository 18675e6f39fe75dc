"""The text of prepared data: see record_files.py for the folder.

Test and dev are files of text. Training pairs are decoded from their records,
from which text comes back exactly as it was.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import (
  data_folder,
  parallel_text,
  preparation_options,
  record_files,
  split,
  vocabulary,
)

_RECORDS_AT_ONCE = 4096
_FEATURES = {
  name: tf.io.RaggedFeature(tf.int64) for name in record_files.Record._fields
}


class TextPair(NamedTuple):
  """A text and its translation, in whatever direction."""

  source: str
  target: str


class PreparedText:
  """Reads text from a folder of prepared data.

  Args:
    folder: that tools/mt/prepare wrote.

  Attributes:
    folder: as given.
    languages: {language: number of training pairs}, without English.

  Raises:
    UserError: for a folder that holds no prepared data.
  """

  def __init__(self, folder: str):
    self.folder = folder
    self._index = _ReadIndex(folder)
    self.languages: dict[str, int] = {
      language: sizes[split.TRAIN]
      for language, sizes in self._index['languages'].items()
    }
    # {language: training pairs from English}; all are read once.
    self._from_english: dict[str, list[TextPair]] = {}

  def CheckLanguage(self, language: str, where: str) -> None:
    """Raises UserError, with `where` in front, unless the data has it."""
    names = [parallel_text.ENGLISH, *self.languages]
    if language not in names:
      raise user_error.UserError(
        f'{where}: the data in {self.folder} has no language {language!r}'
        + spelling.Hint(language, names, 'languages')
      )

  def CheckSplit(self, name: str) -> None:
    """Raises UserError unless there is text of the split."""
    texts = self._index['text']
    if not texts.get(name):
      known = ' and '.join(x for x in texts if texts[x]) or 'no split'
      raise user_error.UserError(
        f'{self.folder} has no text of split {name!r}; it has {known}'
      )

  def Sentences(
    self, name: str, source_language: str, target_language: str
  ) -> list[TextPair]:
    """The text of a direction from or into English that is held out.

    Args:
      name: of the split, dev or test.
      source_language: English, if target_language isn't.
      target_language: of the references.

    Returns:
      The sentences in the order of the records; none where the split has none
      of the language.

    Raises:
      UserError: for a split that has no text, and files that cannot be read.
    """
    self.CheckSplit(name)
    files = self._index['text'][name]
    into_english = target_language == parallel_text.ENGLISH
    language = source_language if into_english else target_language
    # Both directions have the same pairs, and there may be only one of them.
    for other in (False, True):
      group = record_files.Group(language, into_english=into_english != other)
      if group in files:
        pairs = _ReadText(os.path.join(self.folder, files[group]))
        return _Swapped(pairs) if other else pairs
    return []

  def TrainingPairs(
    self, source_language: str, target_language: str
  ) -> list[TextPair]:
    """What is known of a direction from training.

    Args:
      source_language: of the data.
      target_language: another one.

    Returns:
      The pairs; between two languages other than English, those that have the
      same English text.

    Raises:
      UserError: for data that cannot be read.
    """
    if source_language == parallel_text.ENGLISH:
      return self._FromEnglish(target_language)
    from_english = self._FromEnglish(source_language)
    if target_language == parallel_text.ENGLISH:
      return _Swapped(from_english)
    return Join(from_english, self._FromEnglish(target_language))

  def _FromEnglish(self, language: str) -> list[TextPair]:
    if language not in self._from_english:
      self._from_english[language] = self._Decode(language)
    return self._from_english[language]

  def _Decode(self, language: str) -> list[TextPair]:
    files = self._index['files'][split.TRAIN]
    into_english = language not in files
    group = record_files.Group(language, into_english=into_english)
    vocab = self._vocab
    shards = [os.path.join(self.folder, x) for x in files[group]]
    pairs = []
    with user_error.Expected(tf.errors.OpError, prefix=f'{self.folder}: '):
      for batch in tf.data.TFRecordDataset(shards).batch(_RECORDS_AT_ONCE):
        ids = tf.io.parse_example(batch, _FEATURES)
        texts = [
          [vocab.Decode(x) for x in ids[name].to_list()]
          for name in record_files.Record._fields
        ]
        pairs += map(TextPair, *texts)
    return _Swapped(pairs) if into_english else pairs

  @functools.cached_property
  def _vocab(self) -> vocabulary.Vocabulary:
    return data_folder.ReadVocabulary(self.folder, self._index)


def Join(
  first: Iterable[TextPair], second: Iterable[TextPair]
) -> list[TextPair]:
  """Pairs the translations of the same texts.

  Args:
    first: from English.
    second: from English into another language.

  Returns:
    A pair of the two translations for each text that both have, in the order of
    `first`. Of several translations of a text, the first ones are taken.
  """
  targets = _ByText(second)
  return [
    TextPair(target, targets[text])
    for text, target in _ByText(first).items()
    if text in targets
  ]


def _ByText(pairs: Iterable[TextPair]) -> dict[str, str]:
  found: dict[str, str] = {}
  for pair in pairs:
    found.setdefault(pair.source, pair.target)
  return found


def _Swapped(pairs: Sequence[TextPair]) -> list[TextPair]:
  return [TextPair(x.target, x.source) for x in pairs]


def _ReadIndex(folder: str) -> dict[str, Any]:
  path = os.path.join(folder, preparation_options.INDEX_FILE)
  hint = 'expected is a folder that tools/mt/prepare wrote'
  if not os.path.isfile(path):
    raise user_error.UserError(f'there is no {path}; {hint}')
  return data_folder.ReadIndex(
    path,
    lambda found: (
      f'{path} is of format {found!r}, not {record_files.FORMAT}; {hint}'
    ),
  )


def _ReadText(path: str) -> list[TextPair]:
  rows = data_folder.ReadText(path)
  for number, row in enumerate(rows, 1):
    if len(row) != 2:
      raise user_error.UserError(
        f'{path}, line {number} has {len(row)} columns, not 2; prepare the '
        'data again'
      )
  return [TextPair(*x) for x in rows]
