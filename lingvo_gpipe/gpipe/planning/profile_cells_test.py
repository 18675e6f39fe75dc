"""Tests for profile_cells."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.gpipe import gpipe, micro_batch, placement, test_cells
from lingvo_gpipe.gpipe.planning import profile_cells


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Slow(test_cells.Linear):
  """Takes long for its FLOPs: a loop of small products."""

  def FProp(self, theta, inputs):
    x = super().FProp(theta, inputs)
    loop = tf.while_loop(
      lambda i, _: i < 4000,
      lambda i, y: (i + 1, tf.cos(y)),
      (tf.constant(0), x),
      maximum_iterations=4000,
    )
    return x + 0.0 * loop[1]


def _Params(cells, **kwargs):
  return gpipe.GPipe.Params().Set(
    name='net', cells=cells, num_micro_batches=2, **kwargs
  )


def _Cell(cls, name):
  return cls.Params().Set(name=name, input_dim=4, output_dim=4)


class MeasureTest(parameterized.TestCase, tf.test.TestCase):
  def testAllKindsOfCells(self):
    """Skips, None, statistics and batch fields; a loss at the end."""
    batch = test_cells.Batch()
    cells = test_cells.Cells(keep_prob=0.5)
    net = _Params(cells, profile_cells=True, num_partitions=2).Instantiate()
    plan = net.Plan(micro_batch.Specs(batch))
    self.assertIn('measured', plan.cut)
    self.assertLen(net.cell_times, len(cells))
    for seconds in net.cell_times:
      self.assertBetween(seconds.forward, 1e-6, 1.0)
      self.assertBetween(seconds.backward, 0.0, 1.0)
    net.InstantiateVariables()
    self.assertAllEqual(
      tf.math.is_finite(net.ComputeGradients(batch, 0).loss), True
    )

  def testASlowCellIsFoundOut(self):
    """Counted FLOPs cut in the middle, measured times after the slow cell."""
    cells = [
      _Cell(_Slow, 'slow'),
      *(_Cell(test_cells.Linear, f'cell_{i}') for i in range(6)),
      test_cells.Cells()[-1],
    ]
    batch = test_cells.Batch()
    net = _Params(
      cells,
      profile_cells=True,
      num_partitions=2,
      rematerialize='none',
      # Next to cells as small as these, any transfer would be long.
      transfer_cost=0.0,
    ).Instantiate()
    plan = net.Plan(micro_batch.Specs(batch))
    slow, *others = net.cell_times
    self.assertGreater(slow.forward, 3 * max(c.forward for c in others[:-1]))
    self.assertEqual(plan.partitions[0], (0, 1))

  def testEqualCellsAreMeasuredOnce(self):
    cells = [_Cell(test_cells.Linear, f'cell_{i}') for i in range(5)]
    net = _Params([*cells, test_cells.Cells()[-1]]).Instantiate()
    spec = micro_batch.MicroSpecs(micro_batch.Specs(test_cells.Batch()), 2)
    times = profile_cells.Measure(
      net.cells, net.feeding.FirstSpecs(spec), spec, {}, '/device:CPU:0'
    )
    # The first one computes no gradient of its inputs.
    self.assertLen(set(times), 3)
    self.assertLen(set(times[1:5]), 1)

  @parameterized.parameters(
    ('/job:worker/replica:0/task:1/device:CPU:3', '/device:CPU:0'),
    ('/job:worker/task:1/device:TPU:3', '/device:CPU:0'),
    ('', '/device:CPU:0'),
  )
  def testADeviceOfThisProcessMeasures(self, device, expected):
    self.assertEqual(profile_cells.LocalDevice(device), expected)


if __name__ == '__main__':
  tf.test.main()
