"""Scores of a file of translations, compared with baselines, as a report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lingvo_gpipe import text_table
from tasks.mt import data_amounts, scores

ALL = 'all'
_KINDS = {
  'en_xx': 'from English',
  'xx_en': 'into English',
  'xx_xx': 'between two other languages',
}


@dataclasses.dataclass(frozen=True)
class Compared:
  """What a baseline is worth.

  Attributes:
    score: of the baseline.
    difference: chrF of the translations less that of the baseline, on the
      sentences that both translate.
  """

  score: scores.Score
  difference: float


@dataclasses.dataclass(frozen=True)
class Direction:
  """What is known of a direction.

  Attributes:
    group: its name.
    kind: see scores.Kind.
    language: the one that is not English, or the two.
    training_pairs: of the language, or of that of two with less.
    amount: one of data_amounts.AMOUNTS.
    sentences: that the split has; score.sentences are translated.
    score: of the translations.
    baselines: {name: Compared}, of the baselines that there are.
    on_target: share of translations in the wanted language, if asked for.
    identified: share of references that are rightly identified.
  """

  group: str
  kind: str
  language: str
  training_pairs: int
  amount: str
  sentences: int
  score: scores.Score
  baselines: Mapping[str, Compared]
  on_target: float | None = None
  identified: float | None = None


def Sorted(directions: Sequence[Direction]) -> list[Direction]:
  """By kind, then those with most data first."""
  return sorted(directions, key=lambda x: (x.kind, -x.training_pairs, x.group))


def ByKind(
  directions: Sequence[Direction],
) -> dict[str, list[Direction]]:
  """{what to call a kind: its directions, those with most data first}."""
  return {_KINDS[k]: members for k, members in _Grouped(directions).items()}


def _Grouped(
  directions: Sequence[Direction],
) -> dict[str, list[Direction]]:
  kinds: dict[str, list[Direction]] = {}
  for direction in Sorted(directions):
    kinds.setdefault(direction.kind, []).append(direction)
  return kinds


def Means(directions: Sequence[Direction]) -> dict[str, dict[str, float]]:
  """Means over directions, for each amount of data and for all.

  Args:
    directions: of one kind.

  Returns:
    {amount or ALL: {'directions': how many, 'sentences': how many, 'chrf': x,
    'bleu': x, baseline: its chrF, baseline_difference: x, 'on_target': x,
    'identified': x}}. Each value is a mean over the directions that have it,
    and is left out where there is none.
  """
  means = {}
  for amount in (*data_amounts.AMOUNTS, ALL):
    members = [x for x in directions if amount in (x.amount, ALL)]
    if not members:
      continue
    values: dict[str, list[float]] = {}
    for member in members:
      for name, value in _Values(member).items():
        values.setdefault(name, []).append(value)
    means[amount] = {
      'directions': len(members),
      'sentences': sum(x.score.sentences for x in members),
      **{name: math.fsum(x) / len(x) for name, x in values.items()},
    }
  return means


def _Values(direction: Direction) -> dict[str, float]:
  values = {'chrf': direction.score.chrf, 'bleu': direction.score.bleu}
  for name, compared in direction.baselines.items():
    values[name] = compared.score.chrf
    values[f'{name}_difference'] = compared.difference
  for name in ('on_target', 'identified'):
    value = getattr(direction, name)
    if value is not None:
      values[name] = value
  return values


def Lines(directions: Sequence[Direction], *, min_sentences: int) -> list[str]:
  """The report as text.

  Args:
    directions: one or more.
    min_sentences: directions with fewer are marked.

  Returns:
    A table for each kind of directions, and lines of what to know of it.
  """
  lines = []
  baselines = list(dict.fromkeys(b for x in directions for b in x.baselines))
  columns = [('chrf', 'chrF', _Number), ('bleu', 'BLEU', _Number)]
  for name in baselines:
    columns.append((name, f'{name} chrF', _Number))
    columns.append((f'{name}_difference', 'difference', _Signed))
  if any(x.on_target is not None for x in directions):
    columns.append(('on_target', 'on target', _Share))
    columns.append(('identified', 'of references', _Share))
  for kind, members in ByKind(directions).items():
    lines += ['', f'Translations {kind}:']
    rows = [
      ['language', 'pairs', 'data', 'sentences', *(x[1] for x in columns)]
    ]
    for x in members:
      mark = '*' if x.score.sentences < min_sentences else ''
      rows.append(
        [
          x.language,
          f'{x.training_pairs:,}',
          x.amount,
          f'{x.score.sentences:,}{mark}',
          *_Cells(_Values(x), columns),
        ]
      )
    for amount, values in Means(members).items():
      count = values['directions']
      rows.append(
        [
          f'mean of {count}',
          '',
          amount,
          f'{values["sentences"]:,}',
          *_Cells(values, columns),
        ]
      )
    lines += text_table.Aligned(rows, left={0, 2})
  return lines + ['', *_Notes(directions, min_sentences)]


def _Notes(directions: Sequence[Direction], min_sentences: int) -> list[str]:
  notes = []
  if any(x.score.sentences < min_sentences for x in directions):
    notes.append(
      f'* fewer than {min_sentences} sentences: such scores say little'
    )
  partial = [x for x in directions if x.score.sentences < x.sentences]
  if partial:
    missing = sum(x.sentences - x.score.sentences for x in partial)
    names = ', '.join(
      f'{x.group} {x.score.sentences} of {x.sentences}' for x in partial[:5]
    )
    more = f' and {len(partial) - 5} more' if len(partial) > 5 else ''
    notes.append(
      f'missing: {missing:,} sentences are not translated, the scores are of '
      f'the others: {names}{more}'
    )
  if any(x.on_target is not None for x in directions):
    notes.append(
      'on target: translations in the wanted language, as far as naive Bayes '
      'on characters can tell; of references: what it says of those'
    )
  notes += [f'{name}: {x}' for name, x in scores.Signatures().items()]
  return notes


def _Cells(values: Mapping[str, float], columns: Sequence[Any]) -> list[str]:
  return [
    form(values[name]) if name in values else '-' for name, _, form in columns
  ]


def _Number(value: float) -> str:
  return f'{value:.1f}'


def _Signed(value: float) -> str:
  return f'{value:+.1f}'


def _Share(value: float) -> str:
  return f'{value:.0%}'


def ToJson(directions: Sequence[Direction]) -> dict[str, Any]:
  """The report as values of JSON.

  Args:
    directions: as for Lines.

  Returns:
    signatures, means {kind: as of Means()} and directions {group: values};
    chrF and BLEU are from 0 to 100, shares from 0 to 1.
  """
  return {
    'signatures': scores.Signatures(),
    'means': {
      kind: Means(members) for kind, members in _Grouped(directions).items()
    },
    'directions': {
      x.group: {
        'training_pairs': x.training_pairs,
        'amount': x.amount,
        'sentences': x.sentences,
        'translated': x.score.sentences,
        **_Values(x),
      }
      for x in Sorted(directions)
    },
  }
