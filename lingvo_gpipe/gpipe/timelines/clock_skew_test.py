"""Tests of clock_skew."""

from __future__ import annotations

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.timelines import clock_skew, simulated_times

_WORKER = '/job:worker/replica:0/task:%d'


def _Slacks(times):
  """How long after each cause its effect comes, all of them."""
  return np.concatenate(
    [
      (times[1:, :, 0] - times[:-1, :, 1]).ravel(),
      (times[:-1, :, 4] - times[1:, :, 5]).ravel(),
    ]
  )


class ClockOfTest(parameterized.TestCase):
  @parameterized.parameters(
    ('/job:worker/replica:0/task:12/device:CPU:0', _WORKER % 12),
    ('/job:worker/replica:0/task:1/device:GPU:3', _WORKER % 1),
    ('/device:CPU:1', 'this process'),
    ('CPU:1', 'this process'),
  )
  def testNames(self, device, clock):
    self.assertEqual(clock_skew.ClockOf(device), clock)


class CorrectTest(parameterized.TestCase):
  def testGoodTimesStay(self):
    times = simulated_times.Uniform('1f1b', 3, 6, transfer=0.1, jitter=0.1)
    devices = simulated_times.Workers(3)
    corrected = clock_skew.Correct(times, devices)
    self.assertIs(corrected.times, times)
    self.assertEqual(corrected.shifts, {})
    self.assertEqual(corrected.violation, 0.0)

  @parameterized.parameters(0.5, -0.5)
  def testOneClock(self, skew):
    """Without transfer times, the one shift that helps is exact."""
    times = simulated_times.Uniform('1f1b', 4, 8)
    skewed = times.copy()
    skewed[1] += skew
    corrected = clock_skew.Correct(skewed, simulated_times.Workers(4))
    self.assertEqual(list(corrected.shifts), [_WORKER % 1])
    self.assertAlmostEqual(corrected.shifts[_WORKER % 1], -skew)
    np.testing.assert_allclose(corrected.times, times, atol=1e-12)
    self.assertEqual(corrected.violation, 0.0)

  def testTransferHidesPartOfTheSkew(self):
    times = simulated_times.Uniform('1f1b', 2, 4, transfer=0.2)
    times[1] -= 0.5
    corrected = clock_skew.Correct(times, simulated_times.Workers(2))
    # 0.3 prove themselves: what arrives after 0.2 seems to come 0.3 before.
    self.assertAlmostEqual(corrected.shifts[_WORKER % 1], 0.3)

  @parameterized.parameters(range(8))
  def testRandomClocks(self, seed):
    random = np.random.default_rng(seed)
    times = simulated_times.Uniform(
      'interleaved', 8, 8, 4, transfer=0.05, jitter=0.2, seed=seed
    )
    clocks = random.normal(size=4)
    times += np.tile(clocks, 2)[:, np.newaxis, np.newaxis]
    self.assertLess(_Slacks(times).min(), -0.01)
    corrected = clock_skew.Correct(times, simulated_times.Workers(8, 4))
    self.assertGreaterEqual(_Slacks(corrected.times).min(), -1e-12)
    self.assertEqual(corrected.violation, 0.0)
    # The skew is known up to the transfers to and from a neighbour.
    shifts = [corrected.shifts.get(_WORKER % d, 0.0) for d in range(4)]
    corrected_clocks = clocks + shifts
    self.assertLess(np.ptp(corrected_clocks), 3 * 0.05 + 1e-9)
    # Less would not do: some constraint is tight for each clock but one.
    self.assertLen(corrected.shifts, 3)

  def testPartitionsOfOneProcessShareAClock(self):
    times = simulated_times.Uniform('1f1b', 4, 4)
    devices = [f'{_WORKER % (k // 2)}/device:GPU:{k % 2}' for k in range(4)]
    skewed = times.copy()
    skewed[2:] -= 0.7
    corrected = clock_skew.Correct(skewed, devices)
    self.assertEqual(list(corrected.shifts), [_WORKER % 1])
    np.testing.assert_allclose(corrected.times, times, atol=1e-12)

  def testTolerance(self):
    times = simulated_times.Uniform('1f1b', 2, 4)
    times[1] -= 5e-4
    devices = simulated_times.Workers(2)
    self.assertEqual(clock_skew.Correct(times, devices).shifts, {})
    shifts = clock_skew.Correct(times, devices, tolerance=1e-4).shifts
    self.assertAlmostEqual(shifts[_WORKER % 1], 5e-4)

  def testGradientsLeaveBeforeTheEndOfTheirPass(self):
    times = simulated_times.Uniform('1f1b', 2, 4)
    early = (times[0, :, 4] - times[1, :, 5]).min() + 0.25
    times[0, :, 2:5] -= early
    devices = simulated_times.Workers(2)
    self.assertAlmostEqual(clock_skew.Correct(times, devices).violation, 0.25)
    left = times[..., 5:] - 0.5
    times = np.concatenate([times, left], axis=-1)
    self.assertEqual(clock_skew.Correct(times, devices).violation, 0.0)

  def testClockThatJumps(self):
    """Causality is broken both ways: no shift can mend it."""
    times = simulated_times.Uniform('gpipe', 2, 4)
    times[1, 0] -= 1.5
    times[1, 3] += 2.0
    corrected = clock_skew.Correct(times, simulated_times.Workers(2))
    self.assertEqual(corrected.shifts, {})
    self.assertIs(corrected.times, times)
    self.assertAlmostEqual(corrected.violation, -_Slacks(times).min())

  def testOneProcessHasOneClock(self):
    """Whatever its times say, no clock is to blame."""
    times = simulated_times.Uniform('1f1b', 2, 4)
    times[1] -= 1.0
    devices = ['/device:CPU:0', '/device:CPU:1']
    corrected = clock_skew.Correct(times, devices)
    self.assertIs(corrected.times, times)
    self.assertEqual(corrected.shifts, {})
    self.assertEqual(corrected.violation, 0.0)


if __name__ == '__main__':
  absltest.main()
