"""Tests for partition."""

from __future__ import annotations

import itertools
import random
import time

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition

CellTime = partition.CellTime


def _AllCuts(num_cells, num_partitions):
  for cuts in itertools.combinations(range(1, num_cells), num_partitions - 1):
    ends = [*cuts, num_cells]
    yield list(zip([0, *cuts], ends, strict=True))


def _Quality(costs, partitions, recompute):
  """What a cut is judged by: the largest cost, then the sum of squares."""
  values = partition.PartitionCosts(costs, partitions, recompute)
  return max(values), sum(v * v for v in values)


def _BruteForce(costs, num_partitions, recompute):
  return min(
    _Quality(costs, cut, recompute)
    for cut in _AllCuts(len(costs), num_partitions)
  )


def _Uniform(costs):
  """Cells with B = 2 F, given F."""
  return [CellTime(c, 2 * c) for c in costs]


class PartitionTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('Integers', lambda r: r.randint(1, 9)),
    ('ManyZeros', lambda r: r.choice([0, 0, 1, 5])),
    ('FewValues', lambda r: r.choice([1, 2])),
    ('OneGiant', lambda r: r.choice([1, 1, 2, 3, 500])),
    ('Flops', lambda r: 1024 * r.randint(1, 10**4)),
  )
  def testEqualsBruteForce(self, draw):
    rng = random.Random(1)
    for _ in range(150):
      num_cells = rng.randint(1, 9)
      num_partitions = rng.randint(1, num_cells)
      costs = [CellTime(draw(rng), draw(rng)) for _ in range(num_cells)]
      for recompute in (None, [rng.random() < 0.5] * num_partitions):
        cut = partition.Partition(costs, num_partitions, recompute)
        self.assertIn(cut, list(_AllCuts(num_cells, num_partitions)))
        self.assertEqual(
          _Quality(costs, cut, recompute),
          _BruteForce(costs, num_partitions, recompute),
          (costs, recompute, cut),
        )

  def testAnyRecomputePattern(self):
    rng = random.Random(2)
    for _ in range(100):
      num_cells = rng.randint(2, 8)
      num_partitions = rng.randint(2, num_cells)
      costs = [
        CellTime(rng.randint(0, 9), rng.randint(0, 3)) for _ in range(num_cells)
      ]
      recompute = [rng.random() < 0.5 for _ in range(num_partitions)]
      cut = partition.Partition(costs, num_partitions, recompute)
      self.assertEqual(
        _Quality(costs, cut, recompute),
        _BruteForce(costs, num_partitions, recompute),
        (costs, recompute, cut),
      )

  def testFloats(self):
    rng = random.Random(3)
    for _ in range(100):
      num_cells = rng.randint(1, 9)
      num_partitions = rng.randint(1, num_cells)
      costs = [
        CellTime(rng.random() * 1e-3, rng.random()) for _ in range(num_cells)
      ]
      cut = partition.Partition(costs, num_partitions)
      actual = _Quality(costs, cut, None)
      best = _BruteForce(costs, num_partitions, None)
      self.assertAlmostEqual(actual[0], best[0], delta=1e-12)
      self.assertAlmostEqual(actual[1], best[1], delta=1e-12)

  def testLastPartitionTakesMoreCells(self):
    # 7 equal cells of F + B = 3: 3 * 4 = 12 and 4 * 3 = 12 balance exactly.
    costs = _Uniform([1] * 7)
    self.assertEqual(partition.Partition(costs, 2), [(0, 3), (3, 7)])
    self.assertEqual(
      partition.PartitionCosts(costs, [(0, 3), (3, 7)]), [12, 12]
    )
    no_recompute = [False, False]
    self.assertEqual(
      partition.PartitionCosts(costs, [(0, 3), (3, 7)], no_recompute), [9, 12]
    )

  def testEqualShares(self):
    cut = partition.Partition(_Uniform([2] * 12), 4, [True] * 4)
    self.assertEqual(cut, [(0, 3), (3, 6), (6, 9), (9, 12)])

  def testBalancesTheRestAroundAGiant(self):
    # The giant alone sets the largest cost; the others are evened out still.
    costs = [CellTime(0, c) for c in (100, 1, 1, 1, 1, 1, 1)]
    self.assertEqual(partition.Partition(costs, 3), [(0, 1), (1, 4), (4, 7)])

  def testDeterministicTies(self):
    costs = _Uniform([0] * 4)
    self.assertEqual(partition.Partition(costs, 2), [(0, 1), (1, 4)])

  def testOnePartitionAndOneCellEach(self):
    costs = _Uniform([3, 1, 4])
    self.assertEqual(partition.Partition(costs, 1), [(0, 3)])
    self.assertEqual(partition.Partition(costs, 3), [(0, 1), (1, 2), (2, 3)])

  def testTwoThousandCellsInAboutASecond(self):
    rng = random.Random(4)
    giant = [1.0] * 2000
    giant[700] = 1e6
    for costs in ([rng.random() for _ in range(2000)], giant):
      start = time.process_time()
      cut = partition.Partition(_Uniform(costs), 128)
      # Idle, it takes 0.1 s and 0.5 s; the rest is for a loaded machine.
      self.assertLess(time.process_time() - start, 3)
      self.assertLen(cut, 128)
      self.assertEqual(cut[0][0], 0)
      self.assertEqual(cut[-1][1], 2000)
      for (_, end), (start, _) in itertools.pairwise(cut):
        self.assertEqual(end, start)

  def testTooManyPartitions(self):
    with self.assertRaisesRegex(
      ValueError, '3 cells cannot fill 4 partitions.*--worker_split_size'
    ):
      partition.Partition(_Uniform([1, 1, 1]), 4)

  @parameterized.parameters(0, -1)
  def testTooFewPartitions(self, num_partitions):
    with self.assertRaisesRegex(ValueError, 'must be 1 or more'):
      partition.Partition(_Uniform([1, 1, 1]), num_partitions)

  @parameterized.parameters(-1, float('nan'), float('inf'))
  def testBadCost(self, cost):
    with self.assertRaisesRegex(ValueError, f'cost of cell 1 is {cost}'):
      partition.Partition([CellTime(1, 1), CellTime(1, cost)], 1)

  def testRecomputeOfWrongLength(self):
    with self.assertRaisesRegex(ValueError, '1 entries for 2 partitions'):
      partition.Partition(_Uniform([1, 1, 1]), 2, [True])


if __name__ == '__main__':
  absltest.main()
