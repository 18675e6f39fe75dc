"""Tests of vocabulary_text."""

import collections

from absl.testing import absltest

from tasks.mt import vocabulary_text

_COUNTS = {'en': 4000, 'de': 3000, 'fy': 32}


def _Resample(temperature, limit=10**9):
  texts = {x: [f'{x} {i}' for i in range(n)] for x, n in _COUNTS.items()}
  texts['en'] = texts['en'][:1000]
  found = list(
    vocabulary_text.Resample(
      texts, _COUNTS, temperature=temperature, limit=limit
    )
  )
  return found, collections.Counter(x.split()[0] for x in found)


class VocabularyTextTest(absltest.TestCase):
  def testShares(self):
    shares = vocabulary_text.Shares(_COUNTS, 5)
    self.assertAlmostEqual(sum(shares.values()), 1, places=12)
    for x in _COUNTS:
      for y in _COUNTS:
        self.assertAlmostEqual(
          shares[x] / shares[y], (_COUNTS[x] / _COUNTS[y]) ** 0.2, places=12
        )

  def testTemperatures(self):
    _, counts = _Resample(1)
    self.assertEqual(counts, _COUNTS)
    found, counts = _Resample(5)
    self.assertAlmostEqual(len(found), 7032, delta=2)
    shares = vocabulary_text.Shares(_COUNTS, 5)
    for language, count in counts.items():
      self.assertAlmostEqual(count, 7032 * shares[language], delta=1)
    _, counts = _Resample(1e9)
    self.assertLess(max(counts.values()) - min(counts.values()), 2)

  def testTextsComeEquallyOften(self):
    found, counts = _Resample(5)
    times = collections.Counter(found)
    for language in _COUNTS:
      own = [n for x, n in times.items() if x.split()[0] == language]
      self.assertLess(max(own) - min(own), 2)
      self.assertEqual(sum(own), counts[language])
    self.assertEqual(found, _Resample(5)[0])

  def testLimit(self):
    found, counts = _Resample(5, limit=600)
    self.assertAlmostEqual(len(found), 600, delta=2)
    self.assertLen(set(x for x in found if x[:2] == 'en'), counts['en'])
    # Chosen all over, not the first ones.
    numbers = [int(x.split()[1]) for x in found if x[:2] == 'de']
    self.assertGreater(max(numbers), 2500)
    found, counts = _Resample(1, limit=5)
    self.assertEqual(counts['fy'], 1)


if __name__ == '__main__':
  absltest.main()
