"""Tests for step_simulation."""

from __future__ import annotations

import itertools

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import step_simulation
from lingvo_gpipe.gpipe.schedules import loop_table, schedule

Pass = step_simulation.PassSeconds


def _Rows(name, num_partitions, num_micro_batches, num_devices=None):
  return loop_table.MakeLoopTable(
    schedule.MakeSchedule(name, num_partitions, num_micro_batches, num_devices)
  )


def _Seconds(name, passes, num_micro_batches, latency=0.0, num_devices=None):
  rows = _Rows(name, len(passes), num_micro_batches, num_devices)
  return step_simulation.Simulate(rows, passes, latency).seconds


class SimulateTest(parameterized.TestCase):
  @parameterized.parameters(
    *itertools.product(('gpipe', '1f1b'), (1, 2, 3, 4, 8), (1, 2, 4, 8, 32))
  )
  def testBubbleOfEqualPartitionsIsThePapers(self, name, k, m):
    played = step_simulation.Simulate(_Rows(name, k, m), [Pass(1, 2)] * k)
    self.assertAlmostEqual(played.seconds, 3 * (m + k - 1))
    self.assertAlmostEqual(played.bubble, (k - 1) / (m + k - 1))
    self.assertEqual(played.busy, (3 * m,) * k)

  def testInterleavedBubbleIsSmaller(self):
    rows = _Rows('interleaved', 4, 8, 2)
    played = step_simulation.Simulate(rows, [Pass(1, 2)] * 4)
    self.assertAlmostEqual(
      played.bubble, schedule.BubbleFormula('interleaved', 2, 2, 8)
    )

  def testHandComputedStepWithTransfers(self):
    # Partition 0: F0 0-1, F1 1-2. Outputs take 3 on the link: 0 arrives at 4, 1
    # at 7. Partition 1: 4-7, 7-10. Gradients arrive at 10 and 13. Partition 0:
    # B0 10-12, B1 13-15.
    passes = [Pass(1, 2, sending=3), Pass(1, 2)]
    self.assertEqual(_Seconds('gpipe', passes, 2), 15)

  def testALinkCarriesOneMessageAtATime(self):
    # Outputs leave at 1 and 2 and arrive at 11 and 21; the last gradient leaves
    # at 21 and arrives at 31.
    passes = [Pass(1, 0, sending=10), Pass(0, 0)]
    self.assertEqual(_Seconds('gpipe', passes, 2), 31)

  def testAPassWaitsForAllThatWasSentInTheRowsBefore(self):
    # Of 4, the third pass of partition 1 has a row after the fourth output was
    # sent, so two gradients leave at 41.
    passes = [Pass(1, 0, sending=10), Pass(0, 0)]
    self.assertEqual(_Seconds('gpipe', passes, 4), 61)
    rows = _Rows('gpipe', 2, 4)
    self.assertEqual(rows.forward[:, 0].tolist(), [0, 1, 2, 3, -1, -1, -1])
    self.assertEqual(rows.forward[:, 1].tolist(), [-1, 0, -1, 1, 2, 3, -1])

  def testLatencyIsNoLoadOfTheLink(self):
    # Outputs arrive at 11, 12, 13, 14; the last gradient leaves at 14.
    passes = [Pass(1, 0), Pass(0, 0)]
    self.assertEqual(_Seconds('gpipe', passes, 4, latency=10), 24)

  def testRecomputationFillsTheBubble(self):
    # Partition 0: F0 0-1. Partition 1: 1-4. Recomputation of 0: 1-2, so its
    # backward pass is 4-6 all the same.
    self.assertEqual(_Seconds('gpipe', [Pass(1, 2, 1), Pass(1, 2)], 1), 6)
    # One of 4 seconds ends at 5, after the gradient has come.
    self.assertEqual(_Seconds('gpipe', [Pass(1, 2, 4), Pass(1, 2)], 1), 7)

  def testLastPartitionsRecomputationTakesTime(self):
    self.assertEqual(_Seconds('1f1b', [Pass(1, 2, 1)], 3), 12)

  @parameterized.parameters('gpipe', '1f1b', 'eager_1f1b', 'interleaved')
  def testNoFasterThanTheScheduleOrItsBusiestDevice(self, name):
    passes = [
      Pass(1 + k % 3, 2 + k % 2, k % 2 * 1.0, sending=0.5) for k in range(4)
    ]
    devices = 2 if name == 'interleaved' else 4
    rows = _Rows(name, 4, 6, devices)
    played = step_simulation.Simulate(rows, passes)
    forward, backward, recompute, sending = zip(*passes, strict=True)
    bound = schedule.StepTime(
      rows.schedule, forward, backward, recompute, sending[:-1]
    )
    self.assertGreaterEqual(played.seconds, bound - 1e-9)
    self.assertGreaterEqual(played.seconds, max(played.busy))

  @parameterized.parameters('gpipe', '1f1b', 'eager_1f1b')
  def testMoreOfAnythingIsNoFaster(self, name):
    before = [Pass(1, 2, 1, 0.5)] * 3
    seconds = _Seconds(name, before, 6)
    for k in range(3):
      for field in Pass._fields[: 3 + (k < 2)]:
        slower = list(before)
        slower[k] = before[k]._replace(
          **{field: getattr(before[k], field) + 0.7}
        )
        self.assertGreaterEqual(_Seconds(name, slower, 6), seconds)
    self.assertGreater(_Seconds(name, before, 6, latency=1.0), seconds)
    self.assertGreater(_Seconds(name, before, 7), seconds)

  def testNeedsAPassForEachPartition(self):
    with self.assertRaisesRegex(ValueError, '1 entries for 2 partitions'):
      step_simulation.Simulate(_Rows('1f1b', 2, 2), [Pass(1, 2)])

  def testNothingTakesNoTime(self):
    played = step_simulation.Simulate(_Rows('1f1b', 2, 2), [Pass(0, 0)] * 2)
    self.assertEqual((played.seconds, played.bubble), (0.0, 0.0))


if __name__ == '__main__':
  absltest.main()
