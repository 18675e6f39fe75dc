"""A translation memory: looks up the nearest text that was translated before.

What it gets right needs no model: held-out text of user interfaces is so much
like the text trained on that scores of a model say little without it beside
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction import text as text_features

# Characters of the pieces that texts are compared by. On Django's dev texts
# 2 to 5 across words gave the best chrF; others within 0.6, words 5.6 less.
_NGRAMS = (2, 5)

# Similarities that are held at once, 64 MB.
_CELLS = 2**24


class Match(NamedTuple):
  """What was found.

  Attributes:
    target: translation of the nearest text.
    similarity: of that text, from 0 to 1.
  """

  target: str
  similarity: float


class TranslationMemory:
  """Finds nearest neighbours by the cosine of TF-IDF of character n-grams.

  Args:
    sources: texts, one or more.
    targets: their translations.
  """

  def __init__(self, sources: Sequence[str], targets: Sequence[str]):
    if not sources or len(sources) != len(targets):
      raise ValueError(
        f'{len(sources)} sources and {len(targets)} targets: a memory needs as '
        'many of each, and one at least'
      )
    self._targets = targets
    self._vectorizer = text_features.TfidfVectorizer(
      # Any text has an n-gram of 2 with its ends marked.
      preprocessor=lambda text: f'\2{text.lower()}\3',
      analyzer='char',
      ngram_range=_NGRAMS,
      sublinear_tf=True,
      dtype=np.float32,
    )
    self._sources = self._vectorizer.fit_transform(sources).T.tocsr()

  def Lookup(self, texts: Sequence[str]) -> list[Match]:
    """The nearest neighbours of some texts.

    Args:
      texts: any number.

    Returns:
      A Match for each; of equally near ones the first. A text that has nothing
      in common with any stays as it is, with similarity 0.
    """
    matches = []
    size = max(1, _CELLS // len(self._targets))
    for start in range(0, len(texts), size):
      part = texts[start : start + size]
      similarity = self._vectorizer.transform(part) @ self._sources
      dense = similarity.toarray()  # [texts, sources]
      for text, i, row in zip(part, dense.argmax(1), dense, strict=True):
        found = float(row[i])
        target = self._targets[i] if found else text
        matches.append(Match(target, min(found, 1.0)))
    return matches
