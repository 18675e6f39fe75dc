"""Checks translations against the data they are of, and compares them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from lingvo_gpipe import user_error
from tasks.mt import (
  data_amounts,
  language_identification,
  parallel_text,
  prepared_text,
  scores,
  translation_file,
  zero_shot,
)
from tools.mt import score_report

_Rows = Sequence[translation_file.Translation]


class Comparison:
  """Scores translations beside baselines.

  Args:
    data: that was translated.
    split: of it.
    amounts: see data_amounts.Amounts.

  Raises:
    UserError: for a split without text, and limits that make no sense.
  """

  def __init__(
    self,
    data: prepared_text.PreparedText,
    split: str,
    amounts: Sequence[int] = (),
  ):
    data.CheckSplit(split)
    self._data = data
    self._split = split
    self._amounts = data_amounts.Amounts(data.languages, amounts)

  def Check(self, path: str, rows: _Rows) -> dict[str, int]:
    """Checks that translations are of this data.

    Args:
      path: of their file, for messages.
      rows: the translations.

    Returns:
      {group: number of sentences in the data}.

    Raises:
      UserError: for languages and sentences that the data does not have.
    """
    sizes = {}
    for group, of_group in scores.ByGroup(rows).items():
      first = of_group[0]
      sentences = self._Sentences(
        path, first.source_language, first.target_language
      )
      sizes[group] = len(sentences)
      for row in of_group:
        if row.index >= len(sentences) or sentences[row.index] != (
          row.source,
          row.reference,
        ):
          raise user_error.UserError(
            f'{path}: sentence {row.index} of group {group} is not that of '
            f'split {self._split!r} in {self._data.folder}; name the '
            '--data_dir and the --split that were translated'
          )
    return sizes

  def _Sentences(
    self, path: str, source_language: str, target_language: str
  ) -> list[prepared_text.TextPair]:
    languages = (source_language, target_language)
    for language in languages:
      self._data.CheckLanguage(language, path)
    if parallel_text.ENGLISH in languages:
      return self._data.Sentences(self._split, *languages)
    return [
      prepared_text.TextPair(x.source, x.reference)
      for x in zero_shot.Sentences(self._data, self._split, *languages)
    ]

  def Untranslated(self, rows: _Rows) -> list[str]:
    """Groups that miss, of the kinds of directions that are there.

    Args:
      rows: the translations.

    Returns:
      Names of groups from or into English.
    """
    english = parallel_text.ENGLISH
    found = {x.group for x in rows}
    kinds = {scores.Kind(x) for x in rows}
    directions = []
    for language in self._data.languages:
      if 'en_xx' in kinds:
        directions.append((english, language))
      if 'xx_en' in kinds:
        directions.append((language, english))
    return [
      translation_file.GroupOf(*x)
      for x in directions
      if translation_file.GroupOf(*x) not in found
      and self._data.Sentences(self._split, *x)
    ]

  def Directions(
    self,
    rows: _Rows,
    sizes: Mapping[str, int],
    baselines: Mapping[str, _Rows],
    *,
    on_target: bool = False,
  ) -> list[score_report.Direction]:
    """Scores each direction.

    Args:
      rows: the translations.
      sizes: as of Check().
      baselines: {name: other translations}.
      on_target: whether to identify languages.

    Returns:
      What is to report, sorted.
    """
    others = {name: scores.ByGroup(x) for name, x in baselines.items()}
    return score_report.Sorted(
      [
        self._Direction(
          of_group,
          sizes[group],
          {name: x[group] for name, x in others.items() if group in x},
          on_target,
        )
        for group, of_group in scores.ByGroup(rows).items()
      ]
    )

  def _Direction(
    self,
    rows: _Rows,
    sentences: int,
    baselines: Mapping[str, _Rows],
    on_target: bool,
  ) -> score_report.Direction:
    first = rows[0]
    languages = [
      x
      for x in (first.source_language, first.target_language)
      if x != parallel_text.ENGLISH
    ]
    # Of two languages, the one with less data.
    fewest = min(languages, key=self._data.languages.__getitem__)
    score = scores.OfDirection(rows)
    shares: dict[str, float] = {}
    if on_target:
      for name, texts in (
        ('on_target', [x.translation for x in rows]),
        ('identified', [x.reference for x in rows]),
      ):
        right = self._identifier.NumIn(texts, first.target_language)
        shares[name] = right / len(rows)
    compared = {
      name: Compare(rows, score, other) for name, other in baselines.items()
    }
    return score_report.Direction(
      group=first.group,
      kind=scores.Kind(first),
      language='-'.join(languages),
      training_pairs=self._data.languages[fewest],
      amount=self._amounts[fewest],
      sentences=sentences,
      score=score,
      baselines={name: x for name, x in compared.items() if x},
      **shares,
    )

  @functools.cached_property
  def _identifier(self) -> language_identification.LanguageIdentifier:
    """Trained on all training text."""
    english = parallel_text.ENGLISH
    texts: dict[str, list[str]] = {}
    seen: dict[str, None] = {}
    for language in self._data.languages:
      pairs = self._data.TrainingPairs(english, language)
      texts[language] = [x.target for x in pairs]
      seen |= dict.fromkeys(x.source for x in pairs)
    texts[english] = list(seen)
    return language_identification.LanguageIdentifier(texts)


def Compare(
  rows: _Rows, score: scores.Score, others: _Rows
) -> score_report.Compared | None:
  """Compares translations of a direction with a baseline's.

  Args:
    rows: the translations.
    score: of them.
    others: the baseline's, maybe of other sentences.

  Returns:
    The score of the baseline and the difference, both on the sentences that
    both have translated; None where there are none.
  """
  ours = {x.index for x in rows}
  common = {x.index for x in others} & ours
  if not common:
    return None
  if common != ours:
    score = scores.OfDirection([x for x in rows if x.index in common])
  other = scores.OfDirection([x for x in others if x.index in common])
  return score_report.Compared(other, score.chrf - other.chrf)
