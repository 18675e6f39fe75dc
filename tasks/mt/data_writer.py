"""Encodes the pairs of all languages and writes their files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasks.mt import (
  parallel_text,
  record_files,
  split,
  stable_hash,
  vocabulary,
)

_SECONDS_BETWEEN_LINES = 5.0


class DataWriter:
  """Writes to a folder, and notes what the index says of it.

  Args:
    folder: to write to.
    vocab: to encode with.
    into_english: directions: for each whether it is into English.

  Attributes:
    index: `files`, `counts`, `text` and `tokens` of record_files.
  """

  def __init__(
    self,
    folder: str,
    vocab: vocabulary.Vocabulary,
    into_english: Sequence[bool],
  ):
    self._folder = folder
    self._vocab = vocab
    self._into_english = into_english
    self.index: dict[str, Any] = {
      'files': {x: {} for x in split.SPLITS},
      'counts': {},
      'text': {x: {} for x in (split.DEV, split.TEST)},
      'tokens': {x: {} for x in split.SPLITS},
    }

  def WriteAll(
    self,
    by_language: Mapping[str, Mapping[str, list[parallel_text.Pair]]],
    say: Callable[[str], None],
  ) -> None:
    """Writes {language: {split: pairs}}; `say` gets how far it is."""
    last = time.monotonic()
    for done, (language, sides) in enumerate(by_language.items()):
      if time.monotonic() - last > _SECONDS_BETWEEN_LINES:
        last = time.monotonic()
        say(f'wrote {done} of {len(by_language)} languages')
      for name, pairs in sides.items():
        if pairs:
          self.Write(language, name, pairs)

  def Write(
    self, language: str, name: str, pairs: Sequence[parallel_text.Pair]
  ) -> None:
    """Writes the pairs of a language in a split, in each direction.

    Training pairs are shuffled: neighbours in data are often alike, and readers
    may shuffle only among neighbours.

    Args:
      language: of all pairs.
      name: of the split.
      pairs: one or more.
    """
    if name == split.TRAIN:
      pairs = sorted(pairs, key=lambda x: stable_hash.Uniform('order', *x))
    texts = [[x.source for x in pairs], [x.target for x in pairs]]
    ids = [self._vocab.EncodeAll(x) for x in texts]
    languages = [parallel_text.ENGLISH, language]
    for into_english in self._into_english:
      group = record_files.Group(language, into_english=into_english)
      source, target = (1, 0) if into_english else (0, 1)
      records = [
        record_files.Record(
          self._vocab.SourceIds(x, languages[target]), self._vocab.TargetIds(y)
        )
        for x, y in zip(ids[source], ids[target], strict=True)
      ]
      shards = record_files.WriteShards(self._folder, name, group, records)
      self.index['files'][name][group] = list(shards)
      self.index['counts'] |= shards
      self.index['tokens'][name][group] = [
        sum(len(x.source) for x in records),
        sum(len(x.target) for x in records),
      ]
      if name in self.index['text']:
        self.index['text'][name][group] = record_files.WriteText(
          self._folder,
          name,
          group,
          list(zip(texts[source], texts[target], strict=True)),
        )
