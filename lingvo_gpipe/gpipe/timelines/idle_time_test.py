"""Tests of idle_time."""

from __future__ import annotations

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.timelines import idle_time, simulated_times
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def _Timeline(times, devices, schedule='1f1b'):
  return timeline_lib.FromTimes(
    times, devices=devices, schedule=schedule, policies='none'
  )


class ByDeviceTest(absltest.TestCase):
  def testByHand(self):
    # a  F 0-1                       R 1.5-2.5  B 7-9
    # b            F 2-3  B 4-6
    times = np.array([[[0, 1, 1.5, 2.5, 7, 9]], [[2, 3, 4, 4, 4, 6]]])
    idle = idle_time.ByDevice(_Timeline(times, ['a', 'b']))
    # a: overhead before R; b's B ends at 6, and its gradient takes 1.
    self.assertEqual(
      idle['a'], idle_time.IdleTime(waiting=3.5, transfer=1.0, overhead=0.5)
    )
    # b: F of a until 1, sent until 2; 1 between its own passes; 3 at the end.
    self.assertEqual(
      idle['b'], idle_time.IdleTime(waiting=4.0, transfer=1.0, overhead=1.0)
    )

  def testTransferThatAnIdleDeviceShows(self):
    # a  F 0-1 1-2 2-3
    # b              F 3.5-5   F 5.5-7   F 7.5-9: the first one was 2.5 on its
    # way, so the second arrived at 4.5, and overhead is what follows passes.
    forward = np.array(
      [[[0, 1], [1, 2], [2, 3]], [[3.5, 5], [5.5, 7], [7.5, 9]]]
    )
    times = np.concatenate([forward, np.full([2, 3, 4], 9.0)], axis=2)
    idle = idle_time.ByDevice(_Timeline(times, ['a', 'b']))
    self.assertEqual(idle['a'], idle_time.IdleTime(6, 0, 0))
    self.assertEqual(idle['b'], idle_time.IdleTime(1, 2.5, 1.0))

  def testTransferFollowsWaiting(self):
    # a  F 0-1                F 4.5-5.5
    # b            F 3-5                    F 7-8
    forward = np.array([[[0, 1], [4.5, 5.5]], [[3, 5], [7, 8]]])
    times = np.concatenate([forward, np.full([2, 2, 4], 8.0)], axis=2)
    idle = idle_time.ByDevice(_Timeline(times, ['a', 'b']))
    self.assertEqual(idle['b'], idle_time.IdleTime(1.5, 3.5, 0))

  def testNothingIsSentWithinADevice(self):
    times = np.array([[[0, 1, 3, 3, 7, 9]], [[2, 3, 3, 3, 3, 6]]])
    idle = idle_time.ByDevice(_Timeline(times, ['a', 'a']))
    self.assertEqual(idle, {'a': idle_time.IdleTime(0, 0, 2)})


class SharesTest(parameterized.TestCase):
  @parameterized.product(
    schedule=('gpipe', '1f1b', 'interleaved'), seed=(0, 1, 2)
  )
  def testAddUpToTheBubble(self, schedule, seed):
    num_partitions = 6 if schedule == 'interleaved' else 3
    times = simulated_times.Uniform(
      schedule,
      num_partitions,
      7,
      3,
      transfer=0.3,
      overhead=0.1,
      jitter=0.4,
      seed=seed,
    )
    devices = simulated_times.Workers(num_partitions, 3)
    timeline = _Timeline(times, devices, schedule)
    shares = idle_time.Shares(timeline)
    self.assertAlmostEqual(sum(shares), timeline.bubble)
    self.assertGreater(min(shares), 0)

  def _Shares(self, **kwargs):
    times = simulated_times.Uniform('1f1b', 3, 6, **kwargs)
    return idle_time.Shares(_Timeline(times, simulated_times.Workers(3)))

  def testWaiting(self):
    shares = self._Shares()
    self.assertGreater(shares.waiting, 0.1)
    self.assertEqual(shares[1:], (0, 0))

  def testTransfer(self):
    shares = self._Shares(transfer=0.5)
    self.assertGreater(shares.transfer, 0.03)
    self.assertAlmostEqual(shares.overhead, 0)

  def testOverhead(self):
    shares = self._Shares(overhead=0.5)
    self.assertGreater(shares.overhead, 0.05)
    self.assertAlmostEqual(shares.transfer, 0)


if __name__ == '__main__':
  absltest.main()
