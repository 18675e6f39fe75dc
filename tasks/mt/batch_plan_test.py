"""Tests of batch_plan."""

import collections

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.mt import batch_plan, batching, language_sampling

_BUCKETS = (
  batching.Bucket(4, 12),
  batching.Bucket(8, 6),
  batching.Bucket(16, 2),
)
_SIZES = np.array([900, 60, 7])


def _Plan(seed=1, temperature=5.0, sizes=_SIZES, buckets=_BUCKETS):
  """(plan, lengths, groups)."""
  rng = np.random.default_rng(3)
  groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
  lengths = rng.choice(
    [2, 4, 5, 8, 9, 16], len(groups), p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]
  )
  plan = batch_plan.BatchPlan(
    lengths,
    groups,
    buckets=buckets,
    rates=language_sampling.Rates(sizes, temperature),
    seed=seed,
  )
  return plan, lengths, groups


def _Batches(call, positions):
  step = tf.function(call, autograph=False)
  return [
    [x.numpy() for x in step(tf.constant(i, tf.int64))] for i in positions
  ]


class BatchPlanTest(parameterized.TestCase, tf.test.TestCase):
  def testARowIsInTheSmallestBucketThatHoldsIt(self):
    plan, lengths, _ = _Plan()
    rows_of = dict(_BUCKETS)
    smaller = {4: 0, 8: 4, 16: 8}
    seen = collections.Counter()
    for rows, is_row, length in _Batches(plan.Training, range(300)):
      self.assertLen(rows, rows_of[length])
      self.assertTrue(is_row.all())
      self.assertLessEqual(lengths[rows].max(), length)
      self.assertGreater(lengths[rows].min(), smaller[length])
      seen[length] += 1
    self.assertEqual(set(seen), {4, 8, 16})

  @parameterized.parameters(1.0, 5.0)
  def testGroupsHaveTheirShares(self, temperature):
    plan, _, groups = _Plan(temperature=temperature)
    shares = (_SIZES / _SIZES.sum()) ** (1 / temperature)
    shares /= shares.sum()
    counts = np.zeros(3)
    for rows, _, _ in _Batches(plan.Training, range(3000)):
      counts += np.bincount(groups[rows], minlength=3)
    # Drawn at random, that would be ten times as far off.
    self.assertAllClose(counts / counts.sum(), shares, rtol=0, atol=1e-3)

  def testRowsOfAGroupComeEquallyOften(self):
    plan, lengths, groups = _Plan()
    counts = np.zeros(len(groups))
    for rows, _, _ in _Batches(plan.Training, range(3000)):
      np.add.at(counts, rows, 1)
    for group in range(3):
      own = counts[groups == group]
      # In buckets that had their turn a batch ago, or have it next.
      self.assertLessEqual(own.max() - own.min(), 2 + 0.02 * own.mean())
    # The smallest group, over-sampled, comes again and again.
    self.assertGreater(
      counts[groups == 2].min(), 30 * counts[groups == 0].max()
    )

  def testEachPassOverAGroupInABucketIsAPermutation(self):
    plan, lengths, groups = _Plan()
    found = collections.defaultdict(list)
    for rows, _, length in _Batches(plan.Training, range(1500)):
      for row in rows:
        found[groups[row], length].append(row)
    self.assertLen(found, 9)
    for (group, length), rows in found.items():
      size = len(set(rows))
      bucket_of = batching.BucketOf(_BUCKETS, lengths)
      inside = np.array([x.length for x in _BUCKETS])[bucket_of] == length
      if len(rows) >= size:
        self.assertEqual(size, (inside & (groups == group)).sum())
      passes = np.array(rows[: len(rows) // size * size]).reshape([-1, size])
      self.assertAllEqual(
        np.sort(passes, 1), np.tile(np.sort(passes[:1], 1), [len(passes), 1])
      )
      if size > 4 and len(passes) > 1:
        self.assertNotAllEqual(passes[0], passes[1])

  def testSeeds(self):
    first, again, other = (
      np.concatenate(
        [x[0] for x in _Batches(_Plan(seed)[0].Training, range(20))]
      )
      for seed in (1, 1, 2)
    )
    self.assertAllEqual(first, again)
    self.assertFalse(np.array_equal(first, other))

  def testFarPositions(self):
    plan, lengths, _ = _Plan()
    for rows, _, length in _Batches(plan.Training, [10**9, 10**11]):
      self.assertLessEqual(lengths[rows].max(), length)

  def testEvaluationHasEachRowOnce(self):
    plan, lengths, _ = _Plan()
    batches = _Batches(plan.Evaluation, range(plan.num_batches))
    found, buckets = [], []
    for rows, is_row, length in batches:
      self.assertLen(rows, dict(_BUCKETS)[length])
      self.assertLessEqual(lengths[rows].max(), length)
      self.assertTrue(is_row[0])
      found += rows[is_row].tolist()
      buckets.append(length)
    self.assertEqual(sorted(found), list(range(967)))
    self.assertEqual(buckets, sorted(buckets))
    # Only the last mini-batch of a bucket may be filled up.
    partial = sum(not is_row.all() for _, is_row, _ in batches)
    self.assertBetween(partial, 1, 3)
    for length in (4, 8, 16):
      own = [r for rows, x, at in batches if at == length for r in rows[x]]
      self.assertEqual(own, sorted(own))

  def testUnusedBuckets(self):
    buckets = (batching.Bucket(1, 3), *_BUCKETS, batching.Bucket(99, 1))
    plan, _, _ = _Plan(buckets=buckets)
    for call in (plan.Training, plan.Evaluation):
      lengths = {x[2] for x in _Batches(call, range(plan.num_batches))}
      self.assertEqual(lengths, {4, 8, 16})
    only, _, _ = _Plan(buckets=buckets[-1:])
    self.assertEqual(only.num_batches, 967)
    rows = [x[0][0] for x in _Batches(only.Evaluation, range(5))]
    self.assertEqual(rows, [0, 1, 2, 3, 4])


if __name__ == '__main__':
  tf.test.main()
