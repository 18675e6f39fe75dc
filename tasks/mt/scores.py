"""chrF and BLEU of translations, by direction.

chrF, the headline, compares characters, so it needs no words and says something
of the short texts that menus are made of. BLEU counts 4-grams of words, of
which such texts have few; it is what the literature has. Words are what is
between blanks and punctuation of Unicode (tokenisation `intl`), and characters
in languages that write no blanks between words. Both are of sacrebleu, of whole
sets of sentences, and comparable only with the same signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sacrebleu import metrics

from tasks.mt import parallel_text, translation_file

# Thai, Khmer, Lao and Burmese, Chinese and Japanese, Tibetan and Dzongkha.
_WITHOUT_BLANKS = frozenset(
  ('th', 'km', 'lo', 'my', 'zh', 'yue', 'ja', 'bo', 'dz')
)


class Score(NamedTuple):
  """The quality of the translations of a direction, or a mean of some.

  Attributes:
    chrf: from 0 to 100.
    bleu: likewise.
    sentences: how many.
  """

  chrf: float
  bleu: float
  sentences: int


def Tokenization(language: str) -> str:
  """How sacrebleu's BLEU is to find the words of a language."""
  base = language.partition('_')[0].partition('@')[0]
  return 'char' if base in _WITHOUT_BLANKS else 'intl'


def OfDirection(rows: Sequence[translation_file.Translation]) -> Score:
  """The scores of translations into one language.

  Args:
    rows: one or more, in any order.

  Returns:
    The Score.

  Raises:
    ValueError: without rows, or for several languages.
  """
  languages = {x.target_language for x in rows}
  if len(languages) != 1:
    raise ValueError(f'expected translations into one language: {languages}')
  translations = [x.translation for x in rows]
  references = [[x.reference for x in rows]]
  bleu = metrics.BLEU(tokenize=Tokenization(languages.pop()))
  return Score(
    metrics.CHRF().corpus_score(translations, references).score,
    bleu.corpus_score(translations, references).score,
    len(rows),
  )


def ByGroup(
  rows: Iterable[translation_file.Translation],
) -> dict[str, list[translation_file.Translation]]:
  """The translations of each group, groups in the order of appearance."""
  groups: dict[str, list[translation_file.Translation]] = {}
  for row in rows:
    groups.setdefault(row.group, []).append(row)
  return groups


def Mean(scores: Iterable[Score]) -> Score:
  """The mean over directions, each counted once; NaN without any."""
  scores = list(scores)
  if not scores:
    return Score(float('nan'), float('nan'), 0)
  chrf, bleu, sentences = zip(*scores, strict=True)
  return Score(sum(chrf) / len(scores), sum(bleu) / len(scores), sum(sentences))


def Summary(
  rows: Sequence[translation_file.Translation],
) -> dict[str, float]:
  """What a training run shows of its translations.

  Args:
    rows: of any directions.

  Returns:
    chrf and bleu, means over the directions. If there are several kinds of
    them, also the means of each, such as chrf_en_xx, chrf_xx_en and chrf_xx_xx.
  """
  kinds: dict[str, list[Score]] = {}
  for of_group in ByGroup(rows).values():
    kinds.setdefault(Kind(of_group[0]), []).append(OfDirection(of_group))
  means = {'': Mean([x for scores in kinds.values() for x in scores])}
  if len(kinds) > 1:
    means |= {f'_{kind}': Mean(kinds[kind]) for kind in sorted(kinds)}
  return {
    f'{name}{suffix}': getattr(mean, name)
    for name in ('chrf', 'bleu')
    for suffix, mean in means.items()
  }


def Kind(row: translation_file.Translation) -> str:
  """Whether a direction is en_xx, xx_en or xx_xx."""
  sides = (row.source_language, row.target_language)
  return '_'.join('en' if x == parallel_text.ENGLISH else 'xx' for x in sides)


def Signatures() -> dict[str, str]:
  """{metric: how sacrebleu computes it here}."""
  computed = {'chrF': metrics.CHRF()}
  for tokenization in ('intl', 'char'):
    computed[f'BLEU, {tokenization}'] = metrics.BLEU(tokenize=tokenization)
  for metric in computed.values():
    # A signature says how many references there were.
    metric.corpus_score(['a'], [['a']])
  return {name: str(x.get_signature()) for name, x in computed.items()}
