"""Tests for splits."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import splits as splits_lib


class SplitsToPartitionsTest(parameterized.TestCase):
  NAMES = ('stem', 'a', 'b', 'c', 'softmax')

  @parameterized.parameters(
    ([5], [(0, 5)]),
    ([1, 3, 1], [(0, 1), (1, 4), (4, 5)]),
    (['softmax'], [(0, 5)]),
    (['stem', 'c', 'softmax'], [(0, 1), (1, 4), (4, 5)]),
  )
  def testSplits(self, splits, expected):
    self.assertEqual(
      splits_lib.SplitsToPartitions(splits, self.NAMES), expected
    )

  @parameterized.parameters(
    ([], 'splits is empty'),
    ([2, 'c'], 'all numbers of cells or all names'),
    ([True, 4], 'all numbers of cells or all names'),
    ([2, 0, 3], 'gives partition 1 0 cells'),
    ([2, 2], 'holds 4 cells, but there are 5; give'),
    ([1, 4, 5], r'holds 10 cells.*end indices, write splits=\[1, 3, 1\]'),
    (['sten', 'softmax'], "'sten' that is not there; did you mean stem"),
    (['xyz', 'softmax'], 'there are stem, a, b, c, softmax'),
    (['c', 'a', 'softmax'], 'not in the order of the cells'),
    (['a', 'a', 'softmax'], 'one comes twice'),
    (['a', 'c'], "leaves out 1 cells; the last one must be 'softmax'"),
  )
  def testErrors(self, splits, message):
    with self.assertRaisesRegex(ValueError, message):
      splits_lib.SplitsToPartitions(splits, self.NAMES)

  def testAmbiguousName(self):
    with self.assertRaisesRegex(ValueError, r"'a', but cells \[0, 1\] all"):
      splits_lib.SplitsToPartitions(['a', 'b'], ['a', 'a', 'b'])


if __name__ == '__main__':
  absltest.main()
