"""GPipe under a bound of memory: what the plan says is what trains."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.gpipe import (
  gpipe,
  micro_batch,
  placement,
  plain_model,
  test_cells,
)


def setUpModule():
  placement.ConfigureLogicalCpus(3)


def _Net(**kwargs):
  net = (
    gpipe.GPipe.Params()
    .Set(
      name='net',
      cells=test_cells.Cells(keep_prob=0.7),
      num_micro_batches=4,
      dtype=tf.float64,
      **kwargs,
    )
    .Instantiate()
  )
  net.Plan(micro_batch.Specs(test_cells.Batch(dtype=tf.float64)))
  return net


def _Memory(net):
  return max(stage.memory_bytes for stage in net.plan.stages)


class DeviceMemoryTest(parameterized.TestCase, tf.test.TestCase):
  def testAutoTakesTheFastestThatFitsAndTrainsTheSame(self):
    fast = _Net(num_partitions=3, rematerialize='none')
    lean = _Net(
      num_partitions=3,
      rematerialize='auto',
      balance='memory',
      device_memory=10**9,
    )
    self.assertLess(_Memory(lean), _Memory(fast))
    seen = set()
    # The second limit is the least that any cut keeps.
    for limit in (_Memory(fast), _Memory(lean)):
      net = _Net(num_partitions=3, rematerialize='auto', device_memory=limit)
      policies = [stage.rematerialize for stage in net.plan.stages]
      seen.add(tuple(policies))
      self.assertLessEqual(_Memory(net), limit)
      net.InstantiateVariables()
      batch = test_cells.Batch(dtype=tf.float64)
      result = net.ComputeGradients(batch, 0)
      plain = plain_model.ComputeGradients(net.cells, batch, 4, 0)
      self.assertAllClose(result.loss, plain.loss, rtol=1e-12)
      gradients = [g for g in tf.nest.flatten(result.grads) if g is not None]
      for gradient, expected in zip(gradients, plain.grads, strict=True):
        self.assertAllClose(gradient, expected, rtol=1e-9, atol=1e-12)
    self.assertIn(('none',) * 3, seen)
    self.assertLen(seen, 2)

  def testNothingFits(self):
    with self.assertRaisesRegex(ValueError, 'device_memory=100 B.*partition'):
      _Net(num_partitions=2, device_memory=100)

  def testACutByHandThatDoesNotFitIsAWarning(self):
    net = _Net(splits=[3, 3], device_memory=100)
    self.assertIn('more than device_memory=100 B', net.plan.warnings[-1])

  @parameterized.parameters(
    ({'rematerialize': 'auto'}, "rematerialize='auto' needs to know device_m"),
    ({'balance': 'cells'}, "balance='cells' must be one of time, memory"),
  )
  def testErrors(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      _Net(num_partitions=2, **kwargs)

  def testStateOfTheOptimizerCounts(self):
    spec = micro_batch.Specs(test_cells.Batch(dtype=tf.float64))
    sizes = []
    for state in (None, [1000] * 6):
      net = (
        gpipe.GPipe.Params()
        .Set(name='net', cells=test_cells.Cells(), splits=[2, 4])
        .Instantiate()
      )
      plan = net.Plan(spec, state_bytes=state)
      sizes.append([stage.memory_bytes for stage in plan.stages])
    np.testing.assert_array_equal(np.subtract(*sizes[::-1]), [2000, 4000])


if __name__ == '__main__':
  tf.test.main()
