"""Tests for num_micro_batches."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe import num_micro_batches


class ChooseNumMicroBatchesTest(parameterized.TestCase):
  @parameterized.parameters(
    (32, 2, 8),
    (64, 4, 16),
    (128, 1, 4),
    (30, 2, 10),  # 6 and 10 are equally near to 8
    (36, 2, 9),
    (100, 4, 20),
    (5, 4, 5),  # fewer examples than 4 K
    (31, 2, 1),  # a prime
    (31, 8, 31),
  )
  def testDefault(self, batch_size, num_partitions, expected):
    self.assertEqual(
      num_micro_batches.ChooseNumMicroBatches(batch_size, num_partitions),
      expected,
    )

  def testDefaultIsTheNearestDivisor(self):
    for batch_size in range(1, 200):
      for num_partitions in (1, 2, 3, 4, 8):
        m = num_micro_batches.ChooseNumMicroBatches(batch_size, num_partitions)
        self.assertEqual(batch_size % m, 0)
        for other in range(1, batch_size + 1):
          if batch_size % other == 0:
            self.assertLessEqual(
              abs(m - 4 * num_partitions), abs(other - 4 * num_partitions)
            )

  def testWishes(self):
    choose = num_micro_batches.ChooseNumMicroBatches
    self.assertEqual(choose(30, 2, num_micro_batches=5), 5)
    self.assertEqual(choose(30, 2, micro_batch_size=5), 6)
    self.assertEqual(choose(30, 2, num_micro_batches=6, micro_batch_size=5), 6)
    self.assertEqual(choose(30, 8, num_micro_batches=1), 1)

  def testIndivisible(self):
    with self.assertRaises(ValueError) as caught:
      num_micro_batches.ChooseNumMicroBatches(30, 2, num_micro_batches=8)
    self.assertEqual(
      str(caught.exception),
      'mini-batch 30 is not divisible into num_micro_batches=8; set '
      'pad_batches=True, or use one of '
      '1, 2, 3, 5, 6, 10, 15, 30',
    )

  @parameterized.parameters(
    ({'num_micro_batches': 64}, 'num_micro_batches=64 is larger than the mini'),
    ({'micro_batch_size': 31}, 'micro_batch_size=31 is larger than the mini'),
    ({'micro_batch_size': 7}, 'into micro_batch_size=7; set pad_batches'),
    ({'num_micro_batches': 0}, 'num_micro_batches=0 must be 1 or more'),
    (
      {'num_micro_batches': 3, 'micro_batch_size': 5},
      'do not make the mini-batch 30; give only one',
    ),
  )
  def testErrors(self, wishes, message):
    with self.assertRaisesRegex(ValueError, message):
      num_micro_batches.ChooseNumMicroBatches(30, 2, **wishes)

  def testReplicasShareTheMiniBatch(self):
    choose = num_micro_batches.ChooseNumMicroBatches
    self.assertEqual(choose(64, 2, num_replicas=2), 8)
    self.assertEqual(choose(60, 2, num_micro_batches=5, num_replicas=4), 5)
    self.assertEqual(choose(60, 2, micro_batch_size=5, num_replicas=4), 3)
    self.assertEqual(
      choose(31, 2, micro_batch_size=5, num_replicas=2, padded=True), 4
    )
    with self.assertRaisesRegex(
      ValueError,
      r'mini-batch 30 is not divisible into num_replicas=4 \(--worker_replicas'
      r'\); set pad_batches=True, make .* multiple of 4, or use one of 1, 2, ',
    ):
      choose(30, 2, num_replicas=4)
    with self.assertRaisesRegex(
      ValueError,
      r'mini-batch 15 of each of num_replicas=2 \(--worker_replicas; 30 in '
      r'all\) is not divisible into num_micro_batches=2; .* 1, 3, 5, 15$',
    ):
      choose(30, 2, num_micro_batches=2, num_replicas=2)

  def testLongListOfDivisorsIsCutToTheNearest(self):
    with self.assertRaises(ValueError) as caught:
      num_micro_batches.ChooseNumMicroBatches(5040, 2, num_micro_batches=11)
    choices = str(caught.exception).split('use one of ')[1].split(', ')
    self.assertLen(choices, 16)
    self.assertIn('10', choices)
    self.assertNotIn('5040', choices)

  def testEmptyBatch(self):
    with self.assertRaisesRegex(ValueError, 'mini-batch of 0 examples'):
      num_micro_batches.ChooseNumMicroBatches(0, 2)


if __name__ == '__main__':
  absltest.main()
