"""Tests for measure; no figure is compared with anything but 0."""

from __future__ import annotations

from absl.testing import absltest

from tools.benchmarks import stack_sizes
from tools.plan import check_runs, measure


class DeviceTest(absltest.TestCase):
  def testAllIsMeasured(self):
    measure.UseOneThread()
    model = check_runs.Costs(
      stack_sizes.Sizes(
        layers=1, model_dim=8, ffn_dim=16, heads=2, tokens=4, batch=4
      )
    )
    progress = []
    device = measure.Device(
      model, {2, 1}, progress.append, num_workers=2, memory=2**40
    )
    self.assertEqual(sorted(device.cell_times), [1, 2])
    self.assertLen(device.cell_times[1], 2)
    self.assertGreater(device.link_latency, 0.0)
    self.assertLess(device.link_latency, 1.0)
    self.assertLess(device.memory_speed, float('inf'))
    self.assertGreater(device.memory_overhead, measure.FIRST_STEP_BYTES)
    self.assertEqual(device.memory, 2**40)
    self.assertLen(progress, 3)


if __name__ == '__main__':
  absltest.main()
