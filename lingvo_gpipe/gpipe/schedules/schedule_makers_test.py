"""Tests for schedule_makers, against the formulas of schedule."""

from __future__ import annotations

import textwrap

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import (
  schedule,
  schedule_makers,
  schedule_table,
)


def _ManySizes(limit):
  """All (D, V, M) whose product is `limit` at the most."""
  for d in range(1, limit + 1):
    for v in range(1, limit // d + 1):
      for m in range(1, limit // (d * v) + 1):
        yield d, v, m


class SchedulesTest(parameterized.TestCase):
  def _CheckSize(self, name, num_devices, num_chunks, num_micro_batches):
    """All that must hold for a table; returns it."""
    size = (num_devices, num_chunks, num_micro_batches)
    table = schedule.MakeSchedule(
      name, num_devices * num_chunks, num_micro_batches, num_devices
    )
    table.Check()
    self.assertEqual(table.name, name)
    self.assertEqual(table.num_devices, num_devices)
    self.assertEqual(table.num_chunks, num_chunks)
    self.assertAlmostEqual(
      table.BubbleFraction(),
      schedule.BubbleFormula(name, *size),
      places=12,
      msg=f'{name} {size}',
    )
    return table

  @parameterized.parameters('gpipe', '1f1b', 'eager_1f1b')
  def testOnePartitionPerDevice(self, name):
    count = 0
    for k, v, m in _ManySizes(150):
      if v > 1:
        continue
      table = self._CheckSize(name, k, 1, m)
      self.assertLen(table.ticks, 2 * (m + k - 1))
      self.assertEqual(
        table.InFlight(), schedule.InFlightFormula(name, k, 1, m), (k, m)
      )
      count += 1
    self.assertGreater(count, 750)

  def testInterleaved(self):
    count = 0
    for d, v, m in _ManySizes(110):
      table = self._CheckSize('interleaved', d, v, m)
      bounds = schedule.InFlightFormula('interleaved', d, v, m)
      groups = schedule_makers.Groups(d, m)
      if len(groups[0]) == len(groups[-1]):
        self.assertEqual(table.InFlight(), bounds, (d, v, m))
      else:
        for kept, bound in zip(table.InFlight(), bounds, strict=True):
          self.assertLessEqual(kept, bound, (d, v, m))
      count += 1
    self.assertGreater(count, 1500)

  @parameterized.parameters(
    # Larger groups than D where M leaves a remainder.
    (2, 2, 7, [3, 2, 2]),
    (4, 3, 11, [6, 5]),
    (4, 2, 8, [4, 4]),
    (4, 2, 7, [7]),
    (4, 2, 3, [3]),
    (3, 1, 10, [4, 3, 3]),
  )
  def testGroups(self, d, v, m, sizes):
    """A device runs the first chunk of a group, then the next chunk."""
    table = schedule.MakeSchedule('interleaved', d * v, m, d)
    chunks = [
      slot.partition // d
      for _, device, slot in table.Slots()
      if device == 0 and slot.direction == schedule_table.FORWARD
    ]
    self.assertEqual(
      chunks,
      [chunk for size in sizes for chunk in range(v) for _ in range(size)],
    )
    groups = schedule_makers.Groups(d, m)
    self.assertEqual([len(group) for group in groups], sizes)
    self.assertEqual([i for group in groups for i in group], list(range(m)))

  def testInterleavedWithOneChunkIsEager1F1B(self):
    for k, m in ((1, 1), (2, 4), (4, 8), (4, 9), (5, 3)):
      self.assertEqual(
        schedule_makers.Interleaved(k, m, k).ticks,
        schedule_makers.EagerOneForwardOneBackward(k, m).ticks,
      )

  @parameterized.parameters(
    (schedule_makers.GPipe, (4, 4)),
    (schedule_makers.OneForwardOneBackward, (4, 6)),
    (schedule_makers.EagerOneForwardOneBackward, (4, 6)),
    (schedule_makers.Interleaved, (4, 4, 2)),
  )
  def testDocstringShowsTheSchedule(self, maker, size):
    drawn = textwrap.indent(maker(*size).ToText(), '    ')
    self.assertIn(f'\n\n{drawn}\n\n', maker.__doc__)


if __name__ == '__main__':
  absltest.main()
