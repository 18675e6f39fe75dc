"""Translations that need no model: the source itself, and a memory's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tasks.mt import (
  parallel_text,
  prepared_text,
  scores,
  translation_file,
  translation_memory,
)

COPY, MEMORY = BASELINES = ('copy', 'memory')


def Untranslated(
  data: prepared_text.PreparedText, split: str
) -> list[translation_file.Translation]:
  """The sentences of a split in all directions from and into English.

  Args:
    data: with text of the split.
    split: dev or test.

  Returns:
    Translations with an empty `translation`.
  """
  english = parallel_text.ENGLISH
  return [
    row
    for language in data.languages
    for direction in ((english, language), (language, english))
    for row in Rows(data.Sentences(split, *direction), *direction)
  ]


def Rows(
  pairs: Sequence[prepared_text.TextPair],
  source_language: str,
  target_language: str,
) -> list[translation_file.Translation]:
  """Sentences as what a translator starts from.

  Args:
    pairs: the sentences, in the order of their group.
    source_language: of them.
    target_language: likewise.

  Returns:
    Translations with an empty `translation`.
  """
  group = translation_file.GroupOf(source_language, target_language)
  return [
    translation_file.Translation(
      group=group,
      source_language=source_language,
      target_language=target_language,
      index=i,
      source=pair.source,
      reference=pair.target,
      translation='',
    )
    for i, pair in enumerate(pairs)
  ]


def Copy(
  rows: Sequence[translation_file.Translation],
) -> list[translation_file.Translation]:
  """The source as translation."""
  return [
    dataclasses.replace(x, translation=x.source, score=None) for x in rows
  ]


def Memory(
  data: prepared_text.PreparedText,
  rows: Sequence[translation_file.Translation],
) -> list[translation_file.Translation]:
  """What the most similar training pair of the direction says.

  Args:
    data: of the sentences.
    rows: any of them.

  Returns:
    The same sentences by direction, with the similarity as score. Where there
    are no training pairs the source stays, with score 0.
  """
  translated = []
  for of_group in scores.ByGroup(rows).values():
    first = of_group[0]
    pairs = data.TrainingPairs(first.source_language, first.target_language)
    texts = [x.source for x in of_group]
    if pairs:
      sources, targets = zip(*pairs, strict=True)
      found = translation_memory.TranslationMemory(sources, targets).Lookup(
        texts
      )
    else:
      found = [translation_memory.Match(x, 0.0) for x in texts]
    translated += [
      dataclasses.replace(row, translation=x.target, score=x.similarity)
      for row, x in zip(of_group, found, strict=True)
    ]
  return translated


def Translate(
  baseline: str,
  data: prepared_text.PreparedText,
  rows: Sequence[translation_file.Translation],
) -> list[translation_file.Translation]:
  """The translations of one of BASELINES; see Copy and Memory."""
  return Copy(rows) if baseline == COPY else Memory(data, rows)
