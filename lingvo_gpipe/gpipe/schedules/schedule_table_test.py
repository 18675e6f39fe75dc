"""Tests for schedule_table."""

from __future__ import annotations

import dataclasses

from absl.testing import absltest

from lingvo_gpipe.gpipe.schedules import schedule_makers, schedule_table

FORWARD = schedule_table.FORWARD
BACKWARD = schedule_table.BACKWARD
Slot = schedule_table.Slot


def _Swapped(table, a, b):
  """The schedule with the entries at (tick, device) a and b exchanged."""
  ticks = [list(row) for row in table.ticks]
  (ta, da), (tb, db) = a, b
  ticks[ta][da], ticks[tb][db] = ticks[tb][db], ticks[ta][da]
  return dataclasses.replace(table, ticks=tuple(tuple(row) for row in ticks))


def _Order(partition, text):
  """Slots of a partition from text such as 'F0 B0'."""
  return [
    Slot(int(x[1:]), partition, FORWARD if x[0] == 'F' else BACKWARD)
    for x in text.split()
  ]


class CheckTest(absltest.TestCase):
  """Each kind of fault is found."""

  def testBackwardBeforeForward(self):
    wrong = _Swapped(schedule_makers.GPipe(1, 2), (0, 0), (3, 0))
    with self.assertRaisesRegex(
      ValueError,
      r"micro_batch=0, partition=0, direction='backward'\) does not come after "
      r'Slot\(micro_batch=0, partition=0',
    ):
      wrong.Check()

  def testForwardBeforeItsInput(self):
    # Partition 1 would run micro-batch 1 before partition 0 has.
    wrong = _Swapped(schedule_makers.GPipe(2, 2), (1, 1), (2, 1))
    with self.assertRaisesRegex(
      ValueError,
      r"micro_batch=1, partition=1, direction='forward'\) does not come after "
      r'Slot\(micro_batch=1, partition=0',
    ):
      wrong.Check()

  def testMissingAndDouble(self):
    table = schedule_makers.GPipe(1, 2)
    ticks = (table.ticks[0], table.ticks[0], *table.ticks[2:])
    wrong = dataclasses.replace(table, ticks=ticks)
    with self.assertRaisesRegex(ValueError, 'comes twice.*is missing'):
      wrong.Check()

  def testWrongDevice(self):
    wrong = _Swapped(schedule_makers.GPipe(2, 1), (0, 0), (0, 1))
    with self.assertRaisesRegex(ValueError, 'is on device 1'):
      wrong.Check()

  def testForeignSlot(self):
    table = schedule_makers.GPipe(1, 1)
    ticks = (*table.ticks, (Slot(7, 0, FORWARD),))
    wrong = dataclasses.replace(table, ticks=ticks)
    with self.assertRaisesRegex(ValueError, '3 different slots instead of 2'):
      wrong.Check()

  def testDescendingMicroBatches(self):
    for a, b, direction in ((0, 1, 'forward'), (2, 3, 'backward')):
      wrong = _Swapped(schedule_makers.GPipe(1, 2), (a, 0), (b, 0))
      with self.assertRaisesRegex(
        ValueError,
        rf"micro_batch=0, partition=0, direction='{direction}'\) comes later "
        r'than Slot\(micro_batch=1',
      ):
        wrong.Check()


class FromOrdersTest(absltest.TestCase):
  def testEachSlotTakesTheFirstTickItCan(self):
    table = schedule_table.FromOrders(
      'hand-made',
      2,
      3,
      [_Order(0, 'F0 F1 B0 F2 B1 B2'), _Order(1, 'F0 B0 F1 B1 F2 B2')],
    )
    table.Check()
    self.assertEqual(
      table.ToText(),
      'device 0  F0 F1 .. B0 F2 B1 .. B2\ndevice 1  .. F0 B0 F1 B1 F2 B2 ..',
    )
    self.assertEqual(table.InFlight(), [2, 1])
    self.assertAlmostEqual(table.BubbleFraction(), 0.25)

  def testTwoPartitionsOnADevice(self):
    # Partitions 0 and 2 are on device 0.
    table = schedule_table.FromOrders(
      'hand-made',
      3,
      1,
      [
        _Order(0, 'F0') + _Order(2, 'F0 B0') + _Order(0, 'B0'),
        _Order(1, 'F0 B0'),
      ],
    )
    table.Check()
    self.assertLen(table.ticks, 6)
    self.assertEqual(table.num_devices, 2)
    self.assertEqual(table.InFlight(), [1, 1, 1])

  def testDeadlock(self):
    with self.assertRaisesRegex(
      ValueError,
      r'^schedule hand-made: each of these waits for another: '
      r"Slot\(micro_batch=0, partition=0, direction='backward'\), "
      r"Slot\(micro_batch=1, partition=1, direction='forward'\)$",
    ):
      schedule_table.FromOrders(
        'hand-made',
        2,
        2,
        [_Order(0, 'F0 B0 F1 B1'), _Order(1, 'F0 F1 B0 B1')],
      )


class ToTextTest(absltest.TestCase):
  def testAlignsManyMicroBatches(self):
    lines = schedule_makers.GPipe(1, 11).ToText().splitlines()
    self.assertLen(lines, 1)
    self.assertIn('F8  F9  F10 B0  B1', lines[0])

  def testALineForEachChunk(self):
    self.assertEqual(
      schedule_makers.Interleaved(4, 1, 2).ToText(),
      'device 0  chunk 0  F0 .. .. .. .. .. .. B0\n'
      'device 0  chunk 1  .. .. F0 .. .. B0 .. ..\n'
      'device 1  chunk 0  .. F0 .. .. .. .. B0 ..\n'
      'device 1  chunk 1  .. .. .. F0 B0 .. .. ..',
    )


if __name__ == '__main__':
  absltest.main()
