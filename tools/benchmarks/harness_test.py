"""Tests of harness."""

import time

from absl.testing import absltest

from tools.benchmarks import harness


class HarnessTest(absltest.TestCase):
  def testAlternates(self):
    calls, told = [], []

    def _Subject(name):
      return lambda: calls.append(name) or len(calls)

    samples = harness.Alternate(
      {name: _Subject(name) for name in 'abc'},
      rounds=2,
      warmups=1,
      progress=told.append,
    )
    self.assertEqual(''.join(calls), 'cbaabccba')
    self.assertEqual(list(samples), ['a', 'b', 'c'])
    # The warm-up's results, 1 to 3, are not among them.
    self.assertEqual([s.result for s in samples['a']], [4, 9])
    self.assertEqual([s.result for s in samples['b']], [5, 8])
    self.assertLen(told, 3)
    self.assertStartsWith(told[0], 'warm-up round')
    self.assertStartsWith(told[2], 'round 2/2')

  def testMeasuresSeconds(self):
    samples = harness.Alternate(
      {'sleep': lambda: time.sleep(0.05)}, rounds=1, warmups=0
    )
    self.assertBetween(samples['sleep'][0].seconds, 0.05, 60.0)

  def testBadCounts(self):
    with self.assertRaisesRegex(ValueError, 'rounds=0 must be 1 or more'):
      harness.Alternate({}, rounds=0)

  def testSummarize(self):
    self.assertEqual(
      harness.Summarize([5.0, 1.0, 3.0, 2.0, 4.0]),
      harness.Summary(median=3.0, lower=2.0, upper=4.0, count=5),
    )
    self.assertEqual(
      harness.Summarize([1.0, 2.0]), harness.Summary(1.5, 1.25, 1.75, 2)
    )
    self.assertEqual(
      harness.Summarize([7.0]), harness.Summary(7.0, 7.0, 7.0, 1)
    )


if __name__ == '__main__':
  absltest.main()
