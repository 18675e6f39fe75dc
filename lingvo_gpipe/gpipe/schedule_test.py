"""Tests for schedule."""

from __future__ import annotations

import textwrap

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe import schedule

FORWARD = schedule.FORWARD
BACKWARD = schedule.BACKWARD
Slot = schedule.Slot


def _ManySizes():
  """All (K, M) whose product is 220 at the most: 1,220 pairs."""
  for k in range(1, 221):
    for m in range(1, 220 // k + 1):
      yield k, m


def _Swapped(table, a, b):
  """The schedule with the entries at (tick, device) a and b exchanged."""
  ticks = [list(row) for row in table.ticks]
  (ta, da), (tb, db) = a, b
  ticks[ta][da], ticks[tb][db] = ticks[tb][db], ticks[ta][da]
  return schedule.Schedule(
    table.name,
    table.num_partitions,
    table.num_micro_batches,
    tuple(tuple(row) for row in ticks),
  )


class GPipeTest(absltest.TestCase):
  def testPropertiesOfManySizes(self):
    count = 0
    for k, m in _ManySizes():
      table = schedule.MakeSchedule('gpipe', k, m)
      table.Check()
      self.assertLen(table.ticks, 2 * (m + k - 1))
      self.assertEqual(table.num_devices, k)
      self.assertAlmostEqual(
        table.BubbleFraction(), schedule.GPipeBubble(k, m), places=12
      )
      self.assertEqual(table.InFlight(), [m] * k)
      count += 1
    self.assertGreater(count, 1000)

  def testForwardWavefront(self):
    # torchgpipe's clock cycles of 3 micro-batches on 2 partitions, and back.
    table = schedule.GPipe(2, 3)
    entries = [
      [slot and (slot.micro_batch, slot.direction[0]) for slot in row]
      for row in table.ticks
    ]
    self.assertEqual(
      entries,
      [
        [(0, 'f'), None],
        [(1, 'f'), (0, 'f')],
        [(2, 'f'), (1, 'f')],
        [None, (2, 'f')],
        [None, (2, 'b')],
        [(2, 'b'), (1, 'b')],
        [(1, 'b'), (0, 'b')],
        [(0, 'b'), None],
      ],
    )

  def testDocstringShowsTheSchedule(self):
    drawn = textwrap.indent(schedule.GPipe(4, 4).ToText(), '    ')
    self.assertIn(drawn, schedule.GPipe.__doc__)

  def testTextAlignsManyMicroBatches(self):
    lines = schedule.GPipe(1, 11).ToText().splitlines()
    self.assertLen(lines, 1)
    self.assertIn('F9  F10 B10 B9', lines[0])

  def testUnknownNameAndBadCounts(self):
    with self.assertRaisesRegex(
      ValueError, "called 'zigzag'; use one of gpipe"
    ):
      schedule.MakeSchedule('zigzag', 2, 2)
    with self.assertRaisesRegex(ValueError, 'num_micro_batches=0 must be 1'):
      schedule.MakeSchedule('gpipe', 2, 0)


class CheckTest(absltest.TestCase):
  """Each kind of fault is found."""

  def testBackwardBeforeForward(self):
    table = schedule.GPipe(1, 2)
    wrong = _Swapped(table, (0, 0), (3, 0))
    with self.assertRaisesRegex(ValueError, 'does not come after'):
      wrong.Check()

  def testForwardBeforeItsInput(self):
    # Partition 1 would run micro-batch 1 before partition 0 has.
    wrong = _Swapped(schedule.GPipe(2, 2), (1, 1), (2, 1))
    with self.assertRaisesRegex(
      ValueError,
      r"micro_batch=1, partition=1, direction='forward'\) does not come after "
      r'Slot\(micro_batch=1, partition=0',
    ):
      wrong.Check()

  def testMissingAndDouble(self):
    table = schedule.GPipe(1, 2)
    ticks = (table.ticks[0], table.ticks[0], *table.ticks[2:])
    wrong = schedule.Schedule('gpipe', 1, 2, ticks)
    with self.assertRaisesRegex(ValueError, 'comes twice.*is missing'):
      wrong.Check()

  def testWrongDevice(self):
    wrong = _Swapped(schedule.GPipe(2, 1), (0, 0), (0, 1))
    with self.assertRaisesRegex(ValueError, 'is on device 1'):
      wrong.Check()

  def testForeignSlot(self):
    table = schedule.GPipe(1, 1)
    ticks = (*table.ticks, (Slot(7, 0, FORWARD),))
    wrong = schedule.Schedule('gpipe', 1, 1, ticks)
    with self.assertRaisesRegex(ValueError, '3 different slots instead of 2'):
      wrong.Check()

  def testOneForwardOneBackwardIsAcceptedAndCounted(self):
    # A schedule of another kind: K = 2, M = 3, at most K micro-batches kept.
    def _Row(*entries):
      return tuple(
        e and Slot(int(e[1]), k, FORWARD if e[0] == 'F' else BACKWARD)
        for k, e in enumerate(entries)
      )

    table = schedule.Schedule(
      '1f1b',
      2,
      3,
      (
        _Row('F0', None),
        _Row('F1', 'F0'),
        _Row(None, 'B0'),
        _Row('B0', 'F1'),
        _Row('F2', 'B1'),
        _Row('B1', 'F2'),
        _Row(None, 'B2'),
        _Row('B2', None),
      ),
    )
    table.Check()
    self.assertEqual(table.InFlight(), [2, 1])
    self.assertAlmostEqual(table.BubbleFraction(), 0.25)


class StepTimeTest(absltest.TestCase):
  def testEqualTimesGiveTheTable(self):
    for k, m in ((1, 1), (1, 5), (2, 3), (4, 4), (5, 2), (8, 32)):
      table = schedule.GPipe(k, m)
      ones, zeros = [1.0] * k, [0.0] * k
      time = schedule.StepTime(table, ones, ones, zeros)
      self.assertEqual(time, len(table.ticks))

  def testTheSlowestPartitionSetsThePace(self):
    table = schedule.GPipe(3, 10)
    time = schedule.StepTime(table, [1, 5, 1], [1, 5, 1], [0, 0, 0])
    # Micro-batches leave partition 1 every 5 units, in both directions.
    self.assertEqual(time, 2 * (1 + 10 * 5 + 1))

  def testRecomputationFillsTheBubble(self):
    # Partition 0 recomputes its first micro-batch while partition 1 still
    # works; only the other recomputation shows.
    table = schedule.GPipe(2, 2)
    time = schedule.StepTime(table, [1, 1], [2, 2], [1, 0])
    self.assertEqual(time, (1 + 2 + 2) + 2 + (1 + 2))

  def testLastPartitionRunsForwardInItsBackwardSlots(self):
    # It idles until the last micro-batch arrives at 2, then takes 1 + 2 each.
    table = schedule.GPipe(2, 2)
    time = schedule.StepTime(table, [1, 0], [2, 2], [1, 1])
    self.assertEqual(time, 2 + 3 + 3 + 2)


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
      schedule.ChooseNumMicroBatches(batch_size, num_partitions), expected
    )

  def testDefaultIsTheNearestDivisor(self):
    for batch_size in range(1, 200):
      for num_partitions in (1, 2, 3, 4, 8):
        m = schedule.ChooseNumMicroBatches(batch_size, num_partitions)
        self.assertEqual(batch_size % m, 0)
        for other in range(1, batch_size + 1):
          if batch_size % other == 0:
            self.assertLessEqual(
              abs(m - 4 * num_partitions), abs(other - 4 * num_partitions)
            )

  def testWishes(self):
    choose = schedule.ChooseNumMicroBatches
    self.assertEqual(choose(30, 2, num_micro_batches=5), 5)
    self.assertEqual(choose(30, 2, micro_batch_size=5), 6)
    self.assertEqual(choose(30, 2, num_micro_batches=6, micro_batch_size=5), 6)
    self.assertEqual(choose(30, 8, num_micro_batches=1), 1)

  def testIndivisible(self):
    with self.assertRaises(ValueError) as caught:
      schedule.ChooseNumMicroBatches(30, 2, num_micro_batches=8)
    self.assertEqual(
      str(caught.exception),
      'mini-batch 30 is not divisible into num_micro_batches=8; use one of '
      '1, 2, 3, 5, 6, 10, 15, 30',
    )

  @parameterized.parameters(
    ({'num_micro_batches': 64}, 'num_micro_batches=64 is larger than the mini'),
    ({'micro_batch_size': 31}, 'micro_batch_size=31 is larger than the mini'),
    ({'micro_batch_size': 7}, 'into micro_batch_size=7; use one of 1, 2, 3'),
    ({'num_micro_batches': 0}, 'num_micro_batches=0 must be 1 or more'),
    (
      {'num_micro_batches': 3, 'micro_batch_size': 5},
      'do not make a mini-batch of 30; give only one',
    ),
  )
  def testErrors(self, wishes, message):
    with self.assertRaisesRegex(ValueError, message):
      schedule.ChooseNumMicroBatches(30, 2, **wishes)

  def testLongListOfDivisorsIsCutToTheNearest(self):
    with self.assertRaises(ValueError) as caught:
      schedule.ChooseNumMicroBatches(5040, 2, num_micro_batches=11)
    choices = str(caught.exception).split('use one of ')[1].split(', ')
    self.assertLen(choices, 16)
    self.assertIn('10', choices)
    self.assertNotIn('5040', choices)

  def testEmptyBatch(self):
    with self.assertRaisesRegex(ValueError, 'mini-batch of 0 examples'):
      schedule.ChooseNumMicroBatches(0, 2)


if __name__ == '__main__':
  absltest.main()
