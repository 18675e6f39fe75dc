"""Splits pairs into train, dev and test so that nothing leaks.

English texts that are nearly the same make a cluster (near_duplicates.py), and
all pairs of a cluster, in all languages, are on one side. So no model has seen
a test text in training, neither in another language nor with a word changed.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from tasks.mt import near_duplicates, parallel_text, stable_hash

TRAIN, DEV, TEST = SPLITS = ('train', 'dev', 'test')

# The reason for dropping a pair, as reports show it.
LEAK = 'near a text of another split'

# Clusters with more than this share of the texts to be held out are trained on:
# a few patterns ("Select the key to ...") would else be most of a test.
_LARGEST_SHARE = 0.25


def Split(
  pairs: Sequence[parallel_text.Pair],
  *,
  threshold: float,
  dev_share: float,
  test_share: float,
) -> tuple[dict[str, list[parallel_text.Pair]], collections.Counter[str]]:
  """Splits pairs.

  A hash of a cluster's first text, in the order of the alphabet, says where it
  goes. If the data itself has a split (Pair.split), that split is as given, and
  what else is in the clusters of its texts is dropped.

  Args:
    pairs: cleaned.
    threshold: Jaccard similarity from which on texts are nearly the same.
    dev_share: of clusters that go to dev, unless the data has one.
    test_share: of clusters that go to test, unless the data has one.

  Returns:
    ({split: pairs}, {reason: number of pairs dropped for it}).
  """
  texts = sorted({x.source for x in pairs})
  clusters = dict(
    zip(texts, near_duplicates.Clusters(texts, threshold), strict=True)
  )
  given = {}  # {cluster: split}; test comes before dev.
  for split in (DEV, TEST):
    given |= {clusters[x.source]: split for x in pairs if x.split == split}
  shares = {TEST: test_share, DEV: dev_share}
  for split in set(given.values()):
    shares[split] = 0
  largest = _LARGEST_SHARE * sum(shares.values()) * len(texts)
  sides = {
    cluster: given.get(cluster)
    or (_Draw(texts[cluster], shares) if size <= max(1, largest) else TRAIN)
    for cluster, size in collections.Counter(clusters.values()).items()
  }
  result = {split: [] for split in SPLITS}
  for pair in pairs:
    cluster = clusters[pair.source]
    if pair.split == given.get(cluster, ''):
      result[sides[cluster]].append(pair)
  dropped = len(pairs) - sum(map(len, result.values()))
  return result, collections.Counter({LEAK: dropped} if dropped else {})


def _Draw(text: str, shares: Mapping[str, float]) -> str:
  """Where the cluster of a text goes."""
  number = stable_hash.Uniform('split', text)
  for split, share in shares.items():
    if number < share:
      return split
    number -= share
  return TRAIN
