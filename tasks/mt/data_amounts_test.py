"""Tests of grouping languages by amount of data."""

from __future__ import annotations

import collections

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import data_amounts

_SIZES = {'a': 10, 'b': 60, 'c': 30, 'd': 50, 'e': 20, 'f': 40}


class AmountsTest(parameterized.TestCase):
  def testThirds(self):
    amounts = data_amounts.Amounts(_SIZES)
    self.assertEqual(
      list(amounts.items()),
      [
        ('b', 'high'),
        ('d', 'high'),
        ('f', 'medium'),
        ('c', 'medium'),
        ('e', 'low'),
        ('a', 'low'),
      ],
    )

  @parameterized.parameters(
    (0, []),
    (1, [1]),
    (2, [1, 1]),
    (3, [1, 1, 1]),
    (4, [2, 1, 1]),
    (94, [32, 31, 31]),
  )
  def testSizesOfThirds(self, count, expected):
    amounts = data_amounts.Amounts({f'{i:03d}': i for i in range(count)})
    counts = collections.Counter(amounts.values())
    self.assertEqual(list(counts.values()), expected)

  def testAsManyPairsAreTogether(self):
    sizes = {'a': 5, 'b': 5, 'c': 5, 'd': 1, 'e': 1, 'f': 1}
    self.assertEqual(
      list(data_amounts.Amounts(sizes).values()), ['high'] * 3 + ['medium'] * 3
    )

  def testLimits(self):
    amounts = data_amounts.Amounts(_SIZES, (20, 60))
    self.assertEqual(
      amounts,
      {'b': 'high', **dict.fromkeys('dfce', 'medium'), 'a': 'low'},
    )

  @parameterized.parameters([[5]], [[5, 4]], [[0, 4]], [[1, 2, 3]])
  def testWrongLimits(self, limits):
    with self.assertRaisesRegex(user_error.UserError, '--amounts=.* must be'):
      data_amounts.Amounts(_SIZES, limits)


if __name__ == '__main__':
  absltest.main()
