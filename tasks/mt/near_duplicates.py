"""Clusters of texts that say nearly the same.

Two texts are near if they share `threshold` of their words (Jaccard similarity,
|a & b| / |a | b|); a cluster is all that is connected by near pairs.

Comparing all with all would take too long. Words are sorted by how rare they
are. If two texts share enough, then they share a word among the first
n - ceil(threshold * n) + 1 of n of each, so an index of those words finds all
candidates, and few others.
"""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Sequence

_WORD = re.compile(r'\w+')
# Against rounding: 0.6 * 5 is more than 3.
_EPSILON = 1e-9


def Words(text: str) -> frozenset[str]:
  """What texts are compared by: words without case; a text of signs is one."""
  return frozenset(_WORD.findall(text.lower())) or frozenset([text])


def Clusters(texts: Sequence[str], threshold: float) -> list[int]:
  """Finds the clusters.

  Args:
    texts: any; equal ones are in one cluster.
    threshold: similarity from which on texts are near, above 0, up to 1.

  Returns:
    For each text the index of the first one of its cluster.
  """
  if not 0 < threshold <= 1:
    raise ValueError(f'threshold={threshold} must be above 0, and at most 1')
  word_sets = [Words(text) for text in texts]
  firsts: dict[frozenset[str], int] = {}
  sets = _UnionFind(len(texts))
  for i, words in enumerate(word_sets):
    sets.Join(i, firsts.setdefault(words, i))
  frequency = collections.Counter(x for words in firsts for x in words)
  rank = {
    word: i
    for i, word in enumerate(sorted(frequency, key=lambda x: (frequency[x], x)))
  }
  index = collections.defaultdict(list)
  for words in sorted(firsts, key=lambda x: (len(x), firsts[x])):
    i, size = firsts[words], len(words)
    least = math.ceil(threshold * size - _EPSILON)
    prefix = sorted(words, key=rank.__getitem__)[: size - least + 1]
    compared = set()
    for word in prefix:
      for j in index[word]:
        other = word_sets[j]
        if len(other) < least or j in compared:
          continue
        compared.add(j)
        if sets.Find(i) != sets.Find(j) and _AreNear(words, other, threshold):
          sets.Join(i, j)
      index[word].append(i)
  return [sets.Find(i) for i in range(len(texts))]


def _AreNear(a: frozenset[str], b: frozenset[str], threshold: float) -> bool:
  shared = len(a & b)
  return shared >= threshold * (len(a) + len(b) - shared) - _EPSILON


class _UnionFind:
  """Sets of the numbers below `size`, each known by its least number."""

  def __init__(self, size: int):
    self._parent = list(range(size))

  def Find(self, i: int) -> int:
    parent = self._parent
    while parent[i] != i:
      parent[i] = parent[parent[i]]
      i = parent[i]
    return i

  def Join(self, i: int, j: int) -> None:
    i, j = sorted((self.Find(i), self.Find(j)))
    self._parent[j] = i
