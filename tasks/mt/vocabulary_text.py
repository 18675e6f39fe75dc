"""The text that a vocabulary is learnt from: all languages, by temperature.

The share of a language with n of N texts is proportional to (n / N)^(1 / T).
T = 1 leaves shares as they are, a large T makes all equal; the paper's
multilingual models have T = 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tasks.mt import stable_hash


def Shares(counts: Mapping[str, int], temperature: float) -> dict[str, float]:
  """The shares of languages.

  Args:
    counts: {language: number of texts, 1 or more}.
    temperature: T, above 0.

  Returns:
    {language: share}, together 1.
  """
  total = sum(counts.values())
  powers = {x: (n / total) ** (1 / temperature) for x, n in counts.items()}
  norm = sum(powers.values())
  return {x: power / norm for x, power in powers.items()}


def Resample(
  texts: Mapping[str, Sequence[str]],
  counts: Mapping[str, int],
  *,
  temperature: float,
  limit: int,
) -> Iterator[str]:
  """Texts of all languages in their shares.

  Args:
    texts: {language: its different texts, 1 or more}.
    counts: {language: how many texts it counts for}; English, say, has one in
      each pair, though often the same.
    temperature: T.
    limit: how many texts at most.

  Yields:
    As many texts as `counts` has in all, up to `limit`: of a language all as
    often as they fit in, and some, chosen by a hash, once more. At least one.
  """
  total = min(limit, sum(counts.values()))
  for language, share in Shares(counts, temperature).items():
    available = texts[language]
    repeats, rest = divmod(max(1, round(total * share)), len(available))
    for _ in range(repeats):
      yield from available
    yield from sorted(
      available, key=lambda x: stable_hash.Uniform('vocabulary', x)
    )[:rest]
