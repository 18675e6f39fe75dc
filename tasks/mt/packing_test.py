"""Tests of packing."""

import numpy as np
from absl.testing import absltest, parameterized

from tasks.mt import packing


class PackingTest(parameterized.TestCase):
  @parameterized.parameters(range(6))
  def testNoRowIsTooFull(self, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 33, [2, 500])
    rows = packing.Pack(*lengths, 32)
    self.assertEqual(set(rows), set(range(rows.max() + 1)))
    for side in lengths:
      self.assertLessEqual(np.bincount(rows, side).max(), 32)

  def testSentencesOfUsualLengthsFillRows(self):
    rng = np.random.default_rng(0)
    source = np.clip(rng.lognormal(3, 0.6, 5000), 2, 128).astype(int)
    target = np.clip(source * rng.uniform(0.8, 1.2, 5000), 2, 128).astype(int)
    rows = packing.Pack(source, target, 128)
    fill = (source + target).sum() / (2 * 128 * (rows.max() + 1))
    self.assertGreater(fill, 0.93)

  def testBestFit(self):
    # The 3 goes to the 5, which it fills; the 2 to the 6.
    lengths = np.array([2, 5, 3, 6])
    rows = packing.Pack(lengths, lengths, 8)
    self.assertEqual(rows.tolist(), [0, 1, 1, 0])

  def testOfOneOrNone(self):
    self.assertEqual(
      packing.Pack(np.array([4]), np.array([1]), 4).tolist(), [0]
    )
    none = np.zeros([0], np.int64)
    self.assertEmpty(packing.Pack(none, none, 4))


if __name__ == '__main__':
  absltest.main()
