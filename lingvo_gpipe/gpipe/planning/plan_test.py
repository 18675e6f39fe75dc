"""Tests for plan."""

from __future__ import annotations

import json
import random

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import cost, partition, plan
from lingvo_gpipe.gpipe.schedules import schedule


def _Cost(name, forward, backward, **kwargs):
  sizes = {
    'params': 10,
    'param_bytes': 40,
    'activation_bytes': 100,
    'input_bytes': 8,
    'output_bytes': 8,
  }
  return cost.CellCost(
    name=name,
    forward_flops=forward,
    backward_flops=backward,
    output_spec=None,
    **{**sizes, **kwargs},
  )


def _Equal(num_cells, forward=100):
  return [_Cost(f'cell_{i}', forward, 2 * forward) for i in range(num_cells)]


def _Devices(count):
  return [f'/device:CPU:{i}' for i in range(count)]


def _Make(costs, num_partitions, num_micro_batches=32, devices=None, **kwargs):
  return plan.MakePlan(
    costs,
    num_partitions=num_partitions,
    replica_devices=[devices or _Devices(num_partitions)],
    num_micro_batches=num_micro_batches,
    micro_batch_size=2,
    **kwargs,
  )


class MakePlanTest(parameterized.TestCase):
  def testSums(self):
    costs = [
      _Cost('stem', 10, 30, input_bytes=6, params=1, activation_bytes=7),
      _Cost('middle', 20, 30, param_bytes=5, activation_bytes=9),
      _Cost('head', 30, 60, input_bytes=50, output_bytes=4),
    ]
    made = _Make(costs, 2, 8, splits=[2, 1])
    self.assertEqual(made.partitions, [(0, 2), (2, 3)])
    self.assertEqual(made.devices, ['/device:CPU:0', '/device:CPU:1'])
    self.assertEqual(made.cell_names, ('stem', 'middle', 'head'))
    first, last = made.stages
    # Work: 30 + 30 + 60 = 120 with the recomputation, and 30 + 60 = 90.
    self.assertEqual(
      first,
      plan.PartitionPlan(
        start=0,
        end=2,
        first_cell='stem',
        last_cell='middle',
        device='/device:CPU:0',
        rematerialize='partition',
        params=11,
        param_bytes=45,
        forward_flops=30,
        backward_flops=60,
        recompute_flops=30,
        activation_bytes=16,
        stored_bytes=8 * 6,
        sent_bytes=8,
        # Weights, 8 inputs, what is read beside them; 2 gradients wait while
        # the partition is filled, and one micro-batch of outputs leaves.
        memory_bytes=45 + 8 * 6 + (16 - 6) + (2 + 1) * 8,
        share=120 / 210,
      ),
    )
    self.assertEqual(last.recompute_flops, 0)
    self.assertEqual(last.stored_bytes, 8 * 50)
    self.assertEqual(last.sent_bytes, 0)
    self.assertAlmostEqual(first.share + last.share, 1)
    self.assertAlmostEqual(made.balance, 105 / 120)
    self.assertAlmostEqual(made.bubble, 1 / 9)

  def testOnePartition(self):
    made = _Make(_Equal(3), 1, 4)
    self.assertEqual(made.partitions, [(0, 3)])
    self.assertEqual(made.stages[0].recompute_flops, 0)
    self.assertEqual(
      (made.bubble, made.balance, made.utilization, made.speedup), (0, 1, 1, 1)
    )
    self.assertEmpty(made.warnings)

  def testNoRecomputation(self):
    # Equal cuts, so that the prediction is the paper's formula.
    made = _Make(_Equal(8), 4, 16, rematerialize='none')
    self.assertEqual(made.partitions, [(0, 2), (2, 4), (4, 6), (6, 8)])
    self.assertEqual([s.recompute_flops for s in made.stages], [0] * 4)
    self.assertAlmostEqual(made.balance, 1)
    self.assertAlmostEqual(made.utilization, 1 - made.bubble)
    self.assertAlmostEqual(made.speedup, 4 * (1 - 3 / 19))

  def testTheLastPartitionTakesMoreCellsSinceItRecomputesNothing(self):
    for name in ('gpipe', '1f1b'):
      made = _Make(_Equal(8, 1), 2, 32, schedule=name)
      self.assertEqual(made.partitions, [(0, 3), (3, 8)])
      # 32 x 15 units of the last partition set the pace, 3 fill the pipeline
      # and the last gradient takes 6.
      self.assertAlmostEqual(made.speedup, 32 * 24 / (32 * 15 + 3 + 6))

  def testAPolicyForEachPartition(self):
    made = _Make(
      _Equal(6, 1), 3, splits=[2, 2, 2], rematerialize=['cell', 'none', 'cell']
    )
    self.assertEqual(
      [s.rematerialize for s in made.stages], ['cell', 'none', 'cell']
    )
    self.assertEqual([s.recompute_flops for s in made.stages], [2, 0, 2])
    in_flight = 32
    self.assertEqual(
      [s.stored_bytes for s in made.stages],
      [in_flight * 16, in_flight * 200, in_flight * 16],
    )

  def testInterleavedPartitionsTakeTurnsOnDevices(self):
    made = _Make(
      _Equal(8),
      4,
      8,
      devices=_Devices(2) * 2,
      schedule='interleaved',
      num_devices=2,
      rematerialize='none',
    )
    self.assertEqual(made.devices, _Devices(2) * 2)
    self.assertAlmostEqual(made.bubble, 1 / (2 * 8 + 1))

  def testTakesTheFasterCut(self):
    rng = random.Random(1)
    for _ in range(50):
      num_cells = rng.randint(2, 10)
      num_partitions = rng.randint(1, num_cells)
      costs = [
        _Cost(f'c{i}', rng.randint(1, 9), rng.randint(1, 20))
        for i in range(num_cells)
      ]
      times = [
        partition.CellTime(c.forward_flops, c.backward_flops) for c in costs
      ]
      best = _Make(costs, num_partitions)
      for recompute in (None, [False] * num_partitions):
        ranges = partition.Partition(times, num_partitions, recompute)
        by_hand = _Make(
          costs, num_partitions, splits=[j - i for i, j in ranges]
        )
        self.assertGreaterEqual(best.speedup, by_hand.speedup - 1e-9)
        self.assertLessEqual(by_hand.utilization, 1 - by_hand.bubble / 4)

  def testSplitsByNameGiveTheNumberOfPartitions(self):
    made = _Make(
      _Equal(4), None, devices=_Devices(2), splits=['cell_0', 'cell_3']
    )
    self.assertEqual(made.partitions, [(0, 1), (1, 4)])
    self.assertEqual(made.cut, 'cut by hand')

  def testDevices(self):
    self.assertEqual(
      _Make(_Equal(4), 2, devices=_Devices(3)).devices, _Devices(2)
    )
    self.assertEqual(
      _Make(_Equal(4), None, devices=_Devices(3)).num_partitions, 3
    )
    with self.assertRaisesRegex(
      ValueError, r'1 devices \(/device:CPU:0\) for num_partitions=2'
    ):
      _Make(_Equal(4), 2, devices=_Devices(1))

  def testFreeCells(self):
    made = _Make(_Equal(4, 0), 2)
    self.assertEqual(made.balance, 1)
    self.assertEqual(made.stages[0].share, 0.5)

  @parameterized.parameters(
    ({'num_partitions': 5}, '4 cells cannot fill 5 partitions'),
    ({'rematerialize': 'all'}, "'all' must be one of none, partition, cell"),
    ({'schedule': 'zigzag'}, "no schedule is called 'zigzag'"),
    ({'splits': [1, 1, 2]}, 'makes 3 partitions, but num_partitions=2'),
    ({'splits': [1, 1]}, 'holds 2 cells, but there are 4'),
  )
  def testErrors(self, options, message):
    with self.assertRaisesRegex(ValueError, message):
      _Make(_Equal(4), **{'num_partitions': 2, **options})

  @parameterized.parameters(
    (4, 2, r'num_micro_batches=2 is less than num_partitions=4.*60% of the'),
    (4, 15, r'less than 16 \(4 x num_partitions\).*here it is 17% of the step'),
    (4, 16, ''),
    (1, 1, ''),
  )
  def testWarnings(self, num_partitions, num_micro_batches, message):
    made = _Make(_Equal(4), num_partitions, num_micro_batches)
    if message:
      self.assertLen(made.warnings, 1)
      self.assertRegex(made.warnings[0], message)
      self.assertIn(f'Warning: {made.warnings[0]}', made.ToText())
    else:
      self.assertEmpty(made.warnings)

  def testLargePlan(self):
    made = _Make(_Equal(1663), 128, 128)
    self.assertEqual(made.num_partitions, 128)
    self.assertAlmostEqual(
      made.bubble, schedule.BubbleFormula('gpipe', 128, 1, 128)
    )


class OutputTest(absltest.TestCase):
  def testJson(self):
    made = _Make(_Equal(3), 2, 8)
    plain = made.ToJson()
    self.assertEqual(json.loads(json.dumps(plain)), plain)
    self.assertEqual(plain['num_partitions'], 2)
    self.assertEqual(plain['cell_names'], ['cell_0', 'cell_1', 'cell_2'])
    self.assertEqual(plain['stages'][1]['device'], '/device:CPU:1')
    self.assertEqual(plain['num_micro_batches'], 8)

  def testPlansAreValues(self):
    made = _Make(_Equal(3), 2)
    self.assertEqual(made, _Make(_Equal(3), 2))
    self.assertEqual(hash(made), hash(_Make(_Equal(3), 2)))
    with self.assertRaises(AttributeError):
      made.schedule = 'other'


if __name__ == '__main__':
  absltest.main()
