"""Tests for device."""

from __future__ import annotations

import types

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition
from tools.plan import device


def _Device(**kwargs):
  return device.Device(**{'flops': 10.0, 'link_speed': 4.0, **kwargs})


class DeviceTest(parameterized.TestCase):
  def testTimesOfCountedOperations(self):
    costs = [types.SimpleNamespace(forward_flops=20, backward_flops=50)]
    times = _Device(cell_overhead=0.5).Times(costs, 3)
    self.assertEqual(times, [partition.CellTime(2.5, 5.5)])

  def testMeasuredTimesComeFirst(self):
    measured = [partition.CellTime(1.0, 2.0)]
    costs = [types.SimpleNamespace(forward_flops=20, backward_flops=50)]
    one = _Device(cell_times={3: measured})
    self.assertEqual(one.Times(costs, 3), measured)
    self.assertEqual(one.Times(costs, 4), [partition.CellTime(2.0, 5.0)])

  def testUnknownTimes(self):
    one = _Device(flops=None, cell_times={3: [partition.CellTime(1.0, 2.0)]})
    with self.assertRaisesRegex(
      ValueError, r'not measured on micro-batches of 4, only of \[3\]'
    ):
      one.Times([], 4)

  def testSending(self):
    self.assertEqual(_Device().Sending(8), 2.0)

  @parameterized.parameters((1, 0.0), (2, 2 * (2.0 + 1)), (4, 2 * (3.0 + 1)))
  def testAllReduce(self, num_replicas, expected):
    one = _Device(link_latency=1.0)
    self.assertEqual(one.AllReduce(16, num_replicas), expected)

  def testAccumulate(self):
    self.assertEqual(_Device(memory_speed=2.0).Accumulate(4), 6.0)
    self.assertEqual(_Device().Accumulate(4), 0.0)

  def testUpdate(self):
    self.assertEqual(_Device(memory_speed=2.0).Update(3, 4), (6 + 20) / 2)
    self.assertEqual(_Device().Update(3, 4), 0.0)

  def testMemoryForAModel(self):
    self.assertIsNone(_Device().model_memory)
    one = _Device(memory=100, memory_overhead=40)
    self.assertEqual(one.model_memory, 60)

  @parameterized.parameters(
    ({'flops': 0.0}, 'flops=0.0 must be above 0'),
    ({'link_speed': float('nan')}, 'link_speed=nan must be above 0'),
    ({'link_latency': -1.0}, 'link_latency=-1.0 must not be negative'),
    (
      {'memory': 2**30, 'memory_overhead': 2**30},
      '1.00 GiB .--device_memory. has no room',
    ),
  )
  def testErrors(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      _Device(**kwargs)


class ParseNumberTest(parameterized.TestCase):
  @parameterized.parameters(
    ('45T', 45e12), (' 2.5g ', 2.5e9), ('1e9', 1e9), ('7', 7.0), ('1P', 1e15)
  )
  def testNumbers(self, text, expected):
    self.assertEqual(device.ParseNumber(text, 'x'), expected)

  @parameterized.parameters('', 'fast', '0', '-3G', 'inf', 'nan', 'G')
  def testNoNumbers(self, text):
    with self.assertRaisesRegex(ValueError, '--speed=.* is not a number'):
      device.ParseNumber(text, 'speed')


if __name__ == '__main__':
  absltest.main()
