"""Tests for plan_text."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import cost, plan, plan_search, plan_text


def _Cost(name, **kwargs):
  fields = {
    'params': 0,
    'param_bytes': 0,
    'forward_flops': 0,
    'backward_flops': 0,
    'activation_bytes': 0,
    'input_bytes': 0,
    'output_bytes': 0,
  }
  return cost.CellCost(name=name, output_spec=None, **{**fields, **kwargs})


class PlanTextTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.costs = [
      _Cost(
        'stem',
        params=1_234_567,
        param_bytes=4_938_268,
        forward_flops=3_000,
        backward_flops=5_000,
        activation_bytes=700,
        input_bytes=2048,
      ),
      _Cost('middle', output_bytes=1500),
      _Cost(
        'head',
        params=1,
        param_bytes=4,
        forward_flops=4_000_000,
        backward_flops=8_000_000,
        input_bytes=1500,
      ),
    ]

  def _Lines(
    self,
    num_partitions,
    replica_devices=(('/device:CPU:0', '/device:CPU:1'),),
    **kwargs,
  ):
    made = plan.MakePlan(
      self.costs,
      num_partitions=num_partitions,
      replica_devices=replica_devices,
      num_micro_batches=8,
      micro_batch_size=4,
      **kwargs,
    )
    return made.ToText().splitlines()

  def testTable(self):
    lines = self._Lines(2, splits=[2, 1])
    self.assertEqual(
      lines[0],
      '3 cells in 2 partitions (cut by hand); 8 micro-batches of 4; schedule '
      'gpipe, rematerialize partition',
    )
    self.assertEqual(
      [line.split() for line in lines[1:5]],
      [
        'partition cells from to device params weights forward backward '
        'recompute activations stored sent memory share'.split(),
        '0 2 stem middle /device:CPU:0 1.23M 4.71 MiB 3.00K 5.00K 3.00K '
        '700 B 16.0 KiB 1.46 KiB 4.73 MiB 0.1%'.split(),
        '1 1 head head /device:CPU:1 1 4 B 4.00M 8.00M 0 0 B 11.7 KiB 0 B '
        '8.79 KiB 99.9%'.split(),
        'all 3 1.23M 4.71 MiB 4.00M 8.01M 3.00K 700 B 27.7 KiB 1.46 KiB '
        '4.74 MiB 100.0%'.split(),
      ],
    )
    self.assertStartsWith(lines[5], 'Predicted: bubble 11.1%, balance 50.0%')
    self.assertStartsWith(lines[6], 'Per micro-batch: FLOPs')
    self.assertLen(lines, 7)

  def testSaysWhatBecameOfAuto(self):
    demands = plan_search.Demands(device_memory=10**9)
    lines = self._Lines(2, rematerialize='auto', demands=demands)
    self.assertEndsWith(lines[0], 'rematerialize auto (none, none)')
    lines = self._Lines(2, rematerialize=['cell', 'none'])
    self.assertEndsWith(lines[0], 'rematerialize cell, none')

  def testColumnsAreAligned(self):
    lines = self._Lines(2)[1:5]
    self.assertLen({len(line) for line in lines}, 1)

  def testOnePartitionHasNoSum(self):
    lines = self._Lines(1)
    self.assertStartsWith(lines[3], 'Predicted: bubble 0.0%')


class UnitsTest(parameterized.TestCase):
  @parameterized.parameters(
    (0, '0'),
    (999, '999'),
    (1000, '1.00K'),
    (1234, '1.23K'),
    (9996, '10.0K'),
    (99_960, '100K'),
    (999_499, '999K'),
    (999_500, '1.00M'),
    (121_910_000, '122M'),
    (6.01e9, '6.01B'),
    (83.9e9, '83.9B'),
    (1.2e19, '12000Q'),
  )
  def testCount(self, number, expected):
    self.assertEqual(plan_text.Count(number), expected)

  def testFlops(self):
    self.assertEqual(plan_text.Flops(6.01e9), '6.01G')

  @parameterized.parameters(
    (0, '0 B'),
    (1023, '1023 B'),
    (1024, '1.00 KiB'),
    (1536, '1.50 KiB'),
    (1024**2 - 1, '1.00 MiB'),
    (12.5 * 1024**3, '12.5 GiB'),
  )
  def testBytes(self, number, expected):
    self.assertEqual(plan_text.Bytes(number), expected)


if __name__ == '__main__':
  absltest.main()
