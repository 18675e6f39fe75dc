"""Tests of theory."""

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import schedule
from tools.benchmarks import theory


def _GPipe(num_partitions):
  return schedule.MakeSchedule('gpipe', num_partitions, 8)


class TheoryTest(parameterized.TestCase):
  @parameterized.parameters(
    # K M / (M + K - 1) of equal partitions that recompute nothing.
    (['none'] * 2, [4, 4], 2 * 8 / 9),
    (['none'] * 4, [2, 2, 2, 2], 4 * 8 / 11),
    # Everything recomputes: as if the backward pass took 3 units. A partition
    # recomputes its first block while it waits for the gradient.
    (['none'], [8], 1.0),
    (['cell'], [8], 1.0),
    # One partition never recomputes: 8 x 3 units against the first one's
    # 4 x 4 and more.
    (['partition'], [8], 1.0),
  )
  def testBound(self, policies, blocks, bound):
    self.assertAlmostEqual(
      theory.SpeedupBound(_GPipe(len(blocks)), blocks, policies), bound
    )

  def testRecomputationCosts(self):
    # The first partition is never idle: 8 micro-batches of 4 blocks, forward
    # (1 unit), forward again and backward (2 units). One device alone keeps
    # what it reads, and takes 3 units for each of 8 blocks.
    units = theory.StepUnits(_GPipe(2), [4, 4], ['partition'] * 2)
    self.assertEqual(units, 8 * 4 * 4)
    self.assertEqual(
      theory.SpeedupBound(_GPipe(2), [4, 4], ['partition'] * 2), 24 / 16
    )
    mixed = theory.SpeedupBound(_GPipe(2), [4, 4], ['none', 'partition'])
    self.assertAlmostEqual(mixed, 2 * 8 / 9)

  def testRecomputedBlocks(self):
    self.assertEqual(theory.RecomputedBlocks([3, 5], ['cell'] * 2), [3, 5])
    self.assertEqual(theory.RecomputedBlocks([3, 5], ['partition'] * 2), [3, 0])
    self.assertEqual(theory.RecomputedBlocks([3, 5], ['none', 'cell']), [0, 5])


if __name__ == '__main__':
  absltest.main()
