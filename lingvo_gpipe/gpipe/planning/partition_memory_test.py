"""Tests for partition_memory."""

from __future__ import annotations

import random

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import cost, partition_memory
from lingvo_gpipe.gpipe.schedules import schedule

Slots = partition_memory.Slots


def _Cost(name, **kwargs):
  sizes = {
    'params': 0,
    'param_bytes': 0,
    'forward_flops': 1,
    'backward_flops': 2,
    'activation_bytes': 0,
    'input_bytes': 0,
    'output_bytes': 0,
  }
  return cost.CellCost(name=name, output_spec=None, **{**sizes, **kwargs})


# Each number is a power of two, so that sums show what they are made of.
_CELLS = [
  _Cost('a', input_bytes=1, activation_bytes=1 + 2, output_bytes=4),
  _Cost('b', input_bytes=4, activation_bytes=4 + 8, output_bytes=16),
  _Cost('c', input_bytes=16, activation_bytes=16 + 32, output_bytes=64),
]


class BytesTest(parameterized.TestCase):
  def _Bytes(self, k, slots, policy, i, j, cells=None, **kwargs):
    memory = partition_memory.PartitionMemory(
      cells or _CELLS, num_micro_batches=1000, **kwargs
    )
    return int(memory.Bytes(k, slots, policy, i, j))

  @parameterized.parameters(
    # Of a: inputs are data; of the rest, what the policy says.
    ('none', 0, 3, 1000 * 1 + 5 * (2 + 4 + 8 + 16 + 32)),
    ('partition', 0, 3, 1000 * 1 + (2 + 4 + 8 + 16 + 32)),
    ('cell', 0, 3, 1000 * 1 + 5 * (4 + 16) + 32),
    ('cell', 0, 1, 1000 * 1 + 2),
  )
  def testFirstPartition(self, policy, i, j, expected):
    self.assertEqual(self._Bytes(0, Slots(0, 5, 0), policy, i, j), expected)

  @parameterized.parameters(
    ('none', (7 + 1) * 4 + 5 * (8 + 16 + 32)),
    ('partition', (7 + 1) * 4 + (8 + 16 + 32)),
    ('cell', (7 + 1) * 4 + 5 * 16 + 32),
  )
  def testReceivedInputsHaveTheirOwnSlots(self, policy, expected):
    self.assertEqual(self._Bytes(1, Slots(7, 5, 0), policy, 1, 3), expected)

  def testGradientsOfOutputs(self):
    without = self._Bytes(1, Slots(2, 2, 0), 'partition', 1, 2)
    self.assertEqual(
      self._Bytes(1, Slots(2, 2, 3), 'partition', 1, 2), without + (3 + 1) * 16
    )

  def testWeightsGradientsAndState(self):
    cells = [_Cost(n, param_bytes=10, gradient_bytes=100) for n in 'abc']
    size = self._Bytes(
      1,
      Slots(1, 1, 0),
      'none',
      1,
      3,
      cells,
      state_bytes=[1000, 2000, 4000],
    )
    self.assertEqual(size, 20 + 200 + 6000)

  def testAFieldCountsOnceForAllItsReaders(self):
    cells = [
      _Cost('a'),
      _Cost('b', batch_fields=('ids', 'labels')),
      _Cost('c', batch_fields=('labels',)),
    ]
    fields = {'ids': 1, 'labels': 2, 'other': 4}
    sizes = [
      self._Bytes(1, Slots(1, 1, 0), 'none', i, 3, cells, field_bytes=fields)
      for i in range(3)
    ]
    self.assertEqual(sizes, [3000, 3000, 2000])

  def testArraysOfRangesAreAsOneByOne(self):
    rng = random.Random(1)
    cells = [
      _Cost(
        f'cell_{i}',
        input_bytes=rng.randint(0, 99),
        activation_bytes=rng.randint(0, 999),
        output_bytes=rng.randint(0, 99),
        param_bytes=rng.randint(0, 99),
      )
      for i in range(37)
    ]
    memory = partition_memory.PartitionMemory(cells, 8)
    i, j = np.arange(37)[np.newaxis, :], np.arange(1, 38)[:, np.newaxis]
    starts = np.where(i < j, i, j - 1)
    for policy in ('none', 'partition', 'cell'):
      sizes = memory.Bytes(1, Slots(2, 3, 1), policy, starts, j)
      for row, end in enumerate(range(1, 38)):
        for start in range(end):
          one = memory.Bytes(1, Slots(2, 3, 1), policy, start, end)
          self.assertEqual(sizes[row, start], one)
          if policy == 'cell':
            # The largest cell by a walk through all of them.
            part = cells[start:end]
            largest = max(
              max(c.activation_bytes - c.input_bytes, 0) for c in part
            )
            borders = sum(c.input_bytes for c in part[1:])
            expected = (
              sum(c.param_bytes for c in part)
              + 3 * part[0].input_bytes
              + 3 * borders
              + largest
              + 2 * part[-1].output_bytes
            )
            self.assertEqual(one, expected)


class AllSlotsTest(parameterized.TestCase):
  @parameterized.parameters(8, 32)
  def testOneForwardOneBackwardDoesNotGrowWithM(self, num_micro_batches):
    table = schedule.MakeSchedule('1f1b', 4, num_micro_batches)
    slots = partition_memory.AllSlots(table)
    self.assertEqual([s.kept for s in slots], [4, 3, 2, 1])
    self.assertEqual(slots[0].received, 0)
    self.assertEqual(slots[-1].returned, 0)
    self.assertLessEqual(max(s.received for s in slots), 5)
    self.assertLessEqual(max(s.returned for s in slots), 2)

  def testFillDrainKeepsAllMicroBatches(self):
    slots = partition_memory.AllSlots(schedule.MakeSchedule('gpipe', 3, 10))
    self.assertEqual([s.kept for s in slots], [10, 10, 1])

  def testOnePartition(self):
    slots = partition_memory.AllSlots(schedule.MakeSchedule('1f1b', 1, 4))
    self.assertEqual(slots, [Slots(0, 1, 0)])


if __name__ == '__main__':
  absltest.main()
