"""Tests of near_duplicates."""

import random
import time

from absl.testing import absltest, parameterized

from tasks.mt import near_duplicates


def _BruteForce(texts, threshold):
  words = [near_duplicates.Words(x) for x in texts]
  cluster = list(range(len(texts)))
  for i, a in enumerate(words):
    for j, b in enumerate(words[:i]):
      # In whole numbers, as thresholds here are n / 20.
      if 20 * len(a & b) >= round(20 * threshold) * len(a | b):
        low, high = sorted((cluster[i], cluster[j]))
        cluster = [low if x == high else x for x in cluster]
  return cluster


def _Texts(rng, count, words, most):
  return [
    ' '.join(
      f'w{min(rng.randrange(words), rng.randrange(words))}'
      for _ in range(rng.randint(1, most))
    )
    for _ in range(count)
  ]


class NearDuplicatesTest(parameterized.TestCase):
  def testClusters(self):
    texts = [
      'Select the key to play',
      'Save',
      'Select the key to stop.',  # 4 of 6 words.
      'select the KEY to stop now, please',  # 5 of 7 with the one before.
      'save!',
      'Save it',
      '...',
      '...',
      '?',
    ]
    self.assertEqual(
      near_duplicates.Clusters(texts, 0.6), [0, 1, 0, 0, 1, 5, 6, 6, 8]
    )
    self.assertEqual(
      near_duplicates.Clusters(texts, 1), [0, 1, 2, 3, 1, 5, 6, 6, 8]
    )
    self.assertEqual(near_duplicates.Clusters([], 0.6), [])

  @parameterized.parameters(0.05, 0.3, 0.5, 0.6, 0.75, 0.9, 1)
  def testFindsWhatBruteForceFinds(self, threshold):
    rng = random.Random(int(threshold * 100))
    for words, most in ((8, 6), (30, 10), (200, 5), (40, 25)):
      texts = _Texts(rng, 120, words, most)
      self.assertEqual(
        near_duplicates.Clusters(texts, threshold),
        _BruteForce(texts, threshold),
      )

  def testIsQuick(self):
    texts = _Texts(random.Random(1), 6200, 3000, 12)
    start = time.process_time()
    near_duplicates.Clusters(texts, 0.6)
    self.assertLess(time.process_time() - start, 5)

  @parameterized.parameters(0, -1, 1.1)
  def testThresholds(self, threshold):
    with self.assertRaisesRegex(ValueError, 'above 0, and at most 1'):
      near_duplicates.Clusters(['a'], threshold)


if __name__ == '__main__':
  absltest.main()
