"""Tests for schedule; schedule_makers_test compares formulas with tables."""

from __future__ import annotations

import functools
import time

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import schedule


class MakeScheduleTest(parameterized.TestCase):
  def testUnknownName(self):
    message = (
      "called 'zigzag'; use one of gpipe, 1f1b, eager_1f1b, interleaved$"
    )
    with self.assertRaisesRegex(ValueError, message):
      schedule.MakeSchedule('zigzag', 2, 2)
    with self.assertRaisesRegex(ValueError, message):
      schedule.BubbleFormula('zigzag', 2, 1, 2)
    with self.assertRaisesRegex(ValueError, message):
      schedule.InFlightFormula('zigzag', 2, 1, 2)

  @parameterized.parameters(
    ('gpipe', 2, 0, None, 'num_micro_batches=0 and .* must be 1 or more'),
    ('gpipe', 0, 2, None, 'num_partitions=0, .* must be 1 or more'),
    ('interleaved', 2, 2, 0, 'num_devices=0 must be 1 or more'),
    (
      'interleaved',
      6,
      2,
      4,
      'num_partitions=6 must be a multiple of num_devices=4',
    ),
    (
      'interleaved',
      2,
      2,
      4,
      'num_partitions=2 must be a multiple of num_devices=4',
    ),
    (
      '1f1b',
      4,
      2,
      2,
      "schedule='1f1b' has one partition on each device, not 2; use "
      "schedule='interleaved'",
    ),
  )
  def testErrors(self, name, num_partitions, m, num_devices, message):
    with self.assertRaisesRegex(ValueError, message):
      schedule.MakeSchedule(name, num_partitions, m, num_devices)

  def testDefaultOfDevices(self):
    for name in schedule.SCHEDULES:
      self.assertEqual(
        schedule.MakeSchedule(name, 3, 4),
        schedule.MakeSchedule(name, 3, 4, num_devices=3),
      )

  def testLargeTablesAreMadeFast(self):
    for name in schedule.SCHEDULES:
      start = time.process_time()
      schedule.MakeSchedule(name, 64, 512)
      # 0.15 s as measured; a quadratic algorithm would need minutes.
      self.assertLess(time.process_time() - start, 2)


class FormulasTest(parameterized.TestCase):
  @parameterized.parameters(
    ('gpipe', 4, 1, 4, 3 / 7),
    ('1f1b', 4, 1, 12, 3 / 15),
    ('eager_1f1b', 8, 1, 32, 7 / 39),
    ('interleaved', 4, 2, 8, 3 / 19),
    ('interleaved', 4, 4, 16, 3 / 67),
    ('interleaved', 4, 2, 9, 3 / 21),
    ('interleaved', 4, 2, 1, 3 / 4),  # one device at a time
    ('interleaved', 1, 5, 3, 0),
  )
  def testBubble(self, name, d, v, m, expected):
    self.assertAlmostEqual(schedule.BubbleFormula(name, d, v, m), expected)

  @parameterized.parameters(
    ('gpipe', 3, 1, 8, [8, 8, 8]),
    ('1f1b', 4, 1, 8, [4, 3, 2, 1]),
    ('1f1b', 4, 1, 2, [2, 2, 2, 1]),
    ('eager_1f1b', 4, 1, 8, [7, 5, 3, 1]),
    ('eager_1f1b', 4, 1, 4, [4, 4, 3, 1]),
    # Drawn in schedule_makers.Interleaved, for fewer micro-batches.
    ('interleaved', 2, 2, 8, [4, 3, 2, 1]),
  )
  def testInFlight(self, name, d, v, m, expected):
    self.assertEqual(schedule.InFlightFormula(name, d, v, m), expected)

  def testOnlyInterleavedHasChunks(self):
    for formula in (schedule.BubbleFormula, schedule.InFlightFormula):
      with self.assertRaisesRegex(ValueError, 'one partition on each device'):
        formula('gpipe', 2, 2, 4)


class StepTimeTest(parameterized.TestCase):
  @parameterized.parameters(
    ('gpipe', 1), ('1f1b', 1), ('eager_1f1b', 1), ('interleaved', 3)
  )
  def testEqualTimesGiveTheTable(self, name, v):
    for d, m in ((1, 1), (1, 5), (2, 3), (4, 4), (5, 2), (8, 32)):
      table = schedule.MakeSchedule(name, d * v, m, d)
      ones, zeros = [1.0] * d * v, [0.0] * d * v
      self.assertEqual(
        schedule.StepTime(table, ones, ones, zeros), len(table.ticks)
      )

  @parameterized.parameters(
    ('gpipe', 1), ('1f1b', 1), ('eager_1f1b', 1), ('interleaved', 2)
  )
  def testIsTheLongestChain(self, name, v):
    """Against a definition without devices' clocks, for random times."""
    random = np.random.default_rng(7)
    for d, m in ((1, 3), (2, 5), (3, 7), (4, 6)):
      num_partitions = d * v
      table = schedule.MakeSchedule(name, num_partitions, m, d)
      forward, backward, recompute = random.uniform(size=[3, num_partitions])
      transfer = random.uniform(size=num_partitions - 1)
      self.assertAlmostEqual(
        schedule.StepTime(table, forward, backward, recompute, transfer),
        _LongestChain(table, forward, backward, recompute, transfer),
        places=12,
      )

  def testTheSlowestPartitionSetsThePace(self):
    table = schedule.MakeSchedule('gpipe', 3, 10)
    time = schedule.StepTime(table, [1, 5, 1], [1, 5, 1], [0, 0, 0])
    # Micro-batches leave partition 1 every 5 units, in both directions.
    self.assertEqual(time, 1 + 10 * 5 + 10 * 5 + 1)

  def testRecomputationFillsTheBubble(self):
    # Partition 0 recomputes its first micro-batch while partition 1 still
    # works; only the other recomputation shows.
    table = schedule.MakeSchedule('1f1b', 2, 1)
    self.assertEqual(schedule.StepTime(table, [1, 1], [2, 2], [3, 0]), 6)
    table = schedule.MakeSchedule('1f1b', 2, 2)
    self.assertEqual(schedule.StepTime(table, [1, 1], [2, 2], [3, 0]), 12)

  def testLastPartitionRunsForwardInItsBackwardSlots(self):
    # It starts at 1 and takes 1 + 2 each, until 4 and 7.
    table = schedule.MakeSchedule('gpipe', 2, 2)
    for forward, recompute in (([1, 0], [0, 1]), ([1, 1], [0, 0])):
      self.assertEqual(
        schedule.StepTime(table, forward, [2, 2], recompute), 7 + 2
      )

  def testTransfers(self):
    # Of one micro-batch nothing is hidden.
    table = schedule.MakeSchedule('1f1b', 3, 1)
    ones, zeros = [1, 1, 1], [0, 0, 0]
    self.assertEqual(
      schedule.StepTime(table, ones, ones, zeros, [0.25, 0.5]), 6 + 1.5
    )
    with self.assertRaisesRegex(
      ValueError, 'transfer has 3 times; it needs num_partitions - 1 = 2'
    ):
      schedule.StepTime(table, ones, ones, zeros, ones)

  def testEager1F1BHidesTransfers(self):
    k, m = 4, 32
    ones, zeros = [1.0] * k, [0.0] * k
    transfer = [0.5] * (k - 1)

    def _Lost(name):
      """What transfers cost, besides filling and draining the pipeline."""
      table = schedule.MakeSchedule(name, k, m)
      time = schedule.StepTime(table, ones, ones, zeros, transfer)
      return time - len(table.ticks) - 2 * sum(transfer)

    self.assertEqual(_Lost('eager_1f1b'), 0)
    self.assertGreater(_Lost('1f1b'), 5)

  def testInterleavingShortensTheBubble(self):
    d, v, m = 4, 3, 8
    one = schedule.MakeSchedule('1f1b', d, m)
    many = schedule.MakeSchedule('interleaved', d * v, m, d)
    work = 3 * m
    self.assertEqual(
      schedule.StepTime(one, [1] * d, [2] * d, [0] * d), work + 3 * (d - 1)
    )
    # Partitions a third as large.
    self.assertEqual(
      schedule.StepTime(many, [1] * d * v, [2] * d * v, [0] * d * v) / v,
      work + 3 * (d - 1) / v,
    )


def _LongestChain(table, forward, backward, recompute, transfer):
  """StepTime by following each pass back to all it waits for."""
  last = table.num_partitions - 1
  before, latest = {}, {}
  for _, device, slot in table.Slots():
    if slot.partition == last and slot.direction == 'forward':
      continue
    before[slot] = latest.get(device)
    latest[device] = slot

  @functools.cache
  def _End(slot):
    if slot is None:
      return 0.0
    i, k, direction = slot
    free = _End(before[slot])
    if direction == 'forward' or k == last:
      arrival = 0.0
      if k > 0:
        source = slot._replace(partition=k - 1, direction='forward')
        arrival = _End(source) + transfer[k - 1]
      start = max(free, arrival)
      if direction == 'forward':
        return start + forward[k]
      return start + forward[k] + recompute[k] + backward[k]
    source = slot._replace(partition=k + 1)
    arrival = _End(source) + transfer[k]
    return max(free + recompute[k], arrival) + backward[k]

  return max(map(_End, latest.values()))


if __name__ == '__main__':
  absltest.main()
