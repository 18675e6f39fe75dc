"""Tests of stable_hash."""

from absl.testing import absltest

from tasks.mt import stable_hash


class StableHashTest(absltest.TestCase):
  def testIsTheSameForever(self):
    # Another number would move texts from train to test.
    self.assertEqual(stable_hash.Uniform('split', 'Säve'), 0.8792458910121376)

  def testIsUniform(self):
    numbers = [stable_hash.Uniform('x', str(i)) for i in range(20000)]
    self.assertLen(set(numbers), 20000)
    for i in range(10):
      share = sum(i / 10 <= x < (i + 1) / 10 for x in numbers) / 20000
      self.assertAlmostEqual(share, 0.1, delta=0.01)

  def testPartsAreKeptApart(self):
    self.assertNotEqual(
      stable_hash.Uniform('ab', 'c'), stable_hash.Uniform('a', 'bc')
    )


if __name__ == '__main__':
  absltest.main()
