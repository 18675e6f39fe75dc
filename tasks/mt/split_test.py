"""Tests of split."""

import collections
import random

from absl.testing import absltest, parameterized

from tasks.mt import (
  catalogues,
  cleaning,
  gettext_text,
  near_duplicates,
  parallel_text,
  split,
)

Pair = parallel_text.Pair


def _Split(pairs, threshold=0.6, dev_share=0.05, test_share=0.1):
  return split.Split(
    pairs, threshold=threshold, dev_share=dev_share, test_share=test_share
  )


def _Pairs(count, languages=('de', 'fr')):
  rng = random.Random(count)
  texts = [
    ' '.join(rng.choices([f'w{i}' for i in range(600)], k=4))
    for _ in range(count)
  ]
  return [Pair(x, text, f'{x} {text}') for text in texts for x in languages]


class SplitTest(parameterized.TestCase):
  def _AssertNoLeak(self, sides, threshold):
    words = {
      x: {near_duplicates.Words(pair.source) for pair in pairs}
      for x, pairs in sides.items()
    }
    for one, other in (('dev', 'train'), ('test', 'train'), ('test', 'dev')):
      for a in words[one]:
        for b in words[other]:
          self.assertLess(len(a & b) / len(a | b), threshold, (a, b))

  @parameterized.parameters(0.5, 0.6, 0.8)
  def testNothingLeaks(self, threshold):
    pairs = [
      pair
      for x in catalogues.Django()
      if x.language in ('de', 'fr', 'ja', 'ar')
      for pair in gettext_text.ReadCatalogue(x.path, x.language)
    ]
    pairs, _ = cleaning.Clean(pairs, is_user_interface=True)
    sides, dropped = _Split(pairs, threshold)
    self.assertEmpty(dropped)
    self.assertCountEqual(sum(sides.values(), []), pairs)
    self.assertNotEmpty(sides['test'])
    self._AssertNoLeak(sides, threshold)

  def testShares(self):
    pairs = _Pairs(4000)
    sides, dropped = _Split(pairs)
    self.assertEmpty(dropped)
    self.assertCountEqual(sum(sides.values(), []), pairs)
    self.assertAlmostEqual(len(sides['dev']) / len(pairs), 0.05, delta=0.015)
    self.assertAlmostEqual(len(sides['test']) / len(pairs), 0.1, delta=0.02)
    sides, _ = _Split(pairs, dev_share=0, test_share=0)
    self.assertEqual(sides['train'], pairs)

  def testStaysWhenOthersCome(self):
    pairs = _Pairs(500)
    before = {x: k for k, v in _Split(pairs[:600])[0].items() for x in v}
    after = {x: k for k, v in _Split(pairs)[0].items() for x in v}
    moved = [x for x, side in before.items() if after[x] != side]
    # Only where a new text connects clusters.
    self.assertLess(len(moved), 0.02 * len(before))
    shuffled = random.Random(1).sample(pairs, len(pairs))
    again = {x: k for k, v in _Split(shuffled)[0].items() for x in v}
    self.assertEqual(again, after)

  def testPatternsAreTrainedOn(self):
    pairs = [
      Pair('de', f'Select the key to do number {i}', f'Taste {i}')
      for i in range(200)
    ]
    others = _Pairs(1000, ['de'])
    for seed in range(30):
      pattern = [x._replace(source=f'{seed} {x.source}') for x in pairs]
      sides, _ = _Split([*pattern, *others])
      self.assertContainsSubset(pattern, sides['train'])

  def testGivenSplitsStay(self):
    given = [
      Pair('de', 'the cat sat here today', 'a', 'test'),
      Pair('de', 'the cat sat here tonight', 'b'),
      Pair('fr', 'the cat sat here today', 'c'),
      Pair('de', 'a dog came by', 'd', 'dev'),
      Pair('de', 'one dog came by', 'e'),
      Pair('de', 'the cat sat here now', 'f', 'dev'),
    ]
    pairs = _Pairs(300)
    sides, dropped = _Split([*given, *pairs])
    self.assertEqual(sides['test'], [given[0]])
    self.assertEqual(sides['dev'], [given[3]])
    self.assertEqual(sides['train'], pairs)
    self.assertEqual(dropped, collections.Counter({split.LEAK: 4}))
    self._AssertNoLeak(sides, 0.6)

  def testWhatIsNotGivenIsDrawn(self):
    test = Pair('de', 'the cat sat here today', 'a', 'test')
    sides, _ = _Split([test, *_Pairs(1000)])
    self.assertEqual(sides['test'], [test])
    self.assertGreater(len(sides['dev']), 30)


if __name__ == '__main__':
  absltest.main()
