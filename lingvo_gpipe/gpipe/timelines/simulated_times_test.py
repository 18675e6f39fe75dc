"""Tests of simulated_times."""

from __future__ import annotations

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import schedule
from lingvo_gpipe.gpipe.timelines import simulated_times


class TimesTest(parameterized.TestCase):
  @parameterized.product(
    name=('gpipe', '1f1b', 'eager_1f1b', 'interleaved'), transfer=(0.0, 0.7)
  )
  def testAsLongAsThePlanSays(self, name, transfer):
    """The engine's times and StepTime are the same model of a step."""
    num_partitions = 6 if name == 'interleaved' else 3
    table = schedule.MakeSchedule(name, num_partitions, 6, 3)
    random = np.random.default_rng(1)
    forward, backward, recompute = random.random([3, num_partitions])
    times = simulated_times.Times(
      table, forward, backward, recompute, transfer=transfer, epoch=100.0
    )
    self.assertAlmostEqual(times.min(), 100.0)
    self.assertAlmostEqual(
      np.ptp(times),
      schedule.StepTime(
        table,
        forward,
        backward,
        # Of the last partition, this lies between F and B.
        recompute,
        [transfer] * (num_partitions - 1),
      ),
    )


if __name__ == '__main__':
  absltest.main()
