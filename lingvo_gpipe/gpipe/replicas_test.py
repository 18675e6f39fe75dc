"""R replicas of K partitions equal one pipeline with R x M micro-batches."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, placement, replicas, test_cells
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap
_DIM = 4
_STEPS = 2
_LEARNING_RATE = 0.1


def setUpModule():
  placement.ConfigureLogicalCpus(4)


class _Fork(test_cells.Fork):
  """Lends its weights, begins a skip connection, reports a metric."""

  def SharedWeights(self):
    return {'w': 'w'}

  def Stashes(self):
    return ('inputs',)

  def FProp(self, theta, inputs):
    self.Stash('inputs', inputs)
    self.AddMetric('mean', tf.reduce_sum(inputs), inputs.shape[0])
    return super().FProp(theta, inputs)


class _Join(test_cells.Join):
  """Uses other cells' weights, ends a skip connection."""

  def UsedWeights(self):
    return ('w',)

  def Pops(self):
    return ('inputs',)

  def FProp(self, theta, inputs):
    inputs = inputs.copy()
    inputs.x += tf.sin(self.Pop('inputs') @ self.SharedWeight('w'))
    return super().FProp(theta, inputs)


def _Cells():
  cells = test_cells.Cells(dim=_DIM, keep_prob=0.7)
  cells[2].cls, cells[4].cls = _Fork, _Join
  return cells


def _Net(k, r, m, batch, cells=None, **kwargs):
  net = (
    gpipe.GPipe.Params()
    .Set(
      name='net',
      cells=cells or _Cells(),
      num_partitions=k,
      num_replicas=r,
      num_micro_batches=m,
      dtype=batch.inputs.dtype,
      **kwargs,
    )
    .Instantiate()
  )
  net.Plan(batch)
  net.InstantiateVariables()
  return net


def _Train(net, batch):
  """Steps of SGD.

  Returns:
    Of each step all results but times, and at the end the variables.
  """

  @tf.function(autograph=False)
  def _Step(batch, step):
    result = net.ComputeGradients(batch, step)
    for var, grad in zip(
      tf.nest.flatten(net.vars), tf.nest.flatten(result.grads), strict=True
    ):
      if grad is not None:
        with tf.device(var.device):
          var.assign_sub(_LEARNING_RATE * grad)
    net.ApplyStatistics(result.statistics)
    del result['times']
    return result

  results = [_Step(batch, tf.constant(t, tf.int64)) for t in range(_STEPS)]
  return results, tf.nest.map_structure(lambda v: v.numpy(), net.vars)


@functools.cache
def _OnePipeline(total, batch_size):
  batch = test_cells.Batch(batch_size, _DIM)
  pad = batch_size % total != 0
  return _Train(_Net(1, 1, total, batch, pad_batches=pad), batch)


class ReplicasTest(parameterized.TestCase, tf.test.TestCase):
  def _CheckEqualsOnePipeline(self, k, r, m, batch_size=24, **kwargs):
    batch = test_cells.Batch(batch_size, _DIM)
    expected = _OnePipeline(r * m, batch_size)
    actual = _Train(_Net(k, r, m, batch, **kwargs), batch)
    # All of them: loss, metrics, gradients, statistics, auxiliary losses,
    # metrics of cells, variables after some updates.
    self.assertEqual(
      {'aux_losses', 'cell_metrics', 'grads', 'loss', 'metrics', 'statistics'},
      set(actual[0][0]),
    )
    self._Compare(
      actual,
      expected,
      functools.partial(self.assertAllClose, rtol=1e-11, atol=1e-12),
    )

  def _Compare(self, actual, expected, assert_equal):
    tf.nest.assert_same_structure(actual, expected)
    leaves = [tf.nest.flatten(x) for x in (actual, expected)]
    for a, e in zip(*leaves, strict=True):
      self.assertEqual(a is None, e is None)
      if a is not None:
        assert_equal(a, e)

  @parameterized.parameters(
    (2, 2, 3, '1f1b', 'partition'),
    (2, 2, 3, 'gpipe', 'cell'),
    (1, 3, 2, 'eager_1f1b', 'none'),
  )
  def testEqualsOnePipeline(self, k, r, m, schedule, rematerialize):
    self._CheckEqualsOnePipeline(
      k, r, m, schedule=schedule, rematerialize=rematerialize
    )

  def testInterleaved(self):
    self._CheckEqualsOnePipeline(2, 2, 4, schedule='interleaved', num_chunks=2)

  @parameterized.parameters(
    # Micro-batches of 6, the last row only fills up; of 2, the last of replica
    # 2 holds no example, and replica 3 none at all.
    (2, 2, 2, 23),
    (1, 4, 2, 9),
  )
  def testPaddedBatches(self, k, r, m, batch_size):
    # Test cells sum over rows that only fill up; the head's weights are zero
    # there. Both sides do.
    self._CheckEqualsOnePipeline(k, r, m, batch_size, pad_batches=True)

  def testTheSameBitsForEveryCut(self):
    self.enter_context(test_cells.NoGraphOptimizer())
    batch = test_cells.Batch(dtype=tf.float32)
    # Without skip connections: where three or more gradients meet in a tensor,
    # the cut groups their sum.
    cells = test_cells.Cells(dim=_DIM, keep_prob=0.7)
    results = [
      _Train(_Net(k, 2, 3, batch, cells, schedule=schedule), batch)
      for k, schedule in ((1, '1f1b'), (2, '1f1b'), (2, 'gpipe'))
    ]
    for other in results[1:]:
      self._Compare(results[0], other, np.testing.assert_array_equal)

  def testEvaluation(self):
    batch = test_cells.Batch(batch_size=12)
    net = _Net(2, 2, 3, test_cells.Batch())
    one = _Net(1, 1, 1, batch)
    evaluate = tf.function(lambda: net.FProp(net.theta, batch), autograph=False)
    self._Compare(
      evaluate(),
      one.FProp(one.theta, batch),
      functools.partial(self.assertAllClose, rtol=1e-12),
    )

  def testEachVariableIsOnOneReplicasDevice(self):
    batch = test_cells.Batch()
    net = _Net(2, 2, 3, batch)
    self.assertEqual(
      net.plan.replica_devices,
      (('/device:CPU:0', '/device:CPU:1'), ('/device:CPU:2', '/device:CPU:3')),
    )
    grads = net.ComputeGradients(batch, 0).grads
    used = set()
    for k, stage in enumerate(net.plan.stages):
      for i in range(stage.start, stage.end):
        specs = tf.nest.flatten(net.cells[i].VariableSpecs())
        variables = tf.nest.flatten(net.vars.cells[i])
        of_cell = tf.nest.flatten(grads.cells[i])
        for spec, var, grad in zip(specs, variables, of_cell, strict=True):
          replica = int(var.device[-1]) // 2
          self.assertEqual(int(var.device[-1]) % 2, k)
          used.add((k, replica))
          if spec.trainable:
            self.assertEqual(grad.device, var.device)
          else:
            self.assertEqual(replica, 0)
    self.assertLen(used, 4)

  def testEachReplicaComputesOnItsDevices(self):
    batch = test_cells.Batch()
    net = _Net(2, 2, 3, batch)
    step = tf.function(net.ComputeGradients, autograph=False)
    graph = step.get_concrete_function(batch, tf.constant(0, tf.int64)).graph
    products = {}
    for definition in graph.as_graph_def().library.function:
      for node in definition.node_def:
        if node.op == 'MatMul':
          products.setdefault(node.device[-5:], []).append(node.name)
    self.assertEqual(set(products), {f'CPU:{i}' for i in range(4)})
    self.assertLen(products['CPU:2'], len(products['CPU:0']))
    self.assertLen(products['CPU:3'], len(products['CPU:1']))

  def testErrors(self):
    with self.assertRaisesRegex(
      ValueError, 'mini-batch 24 is not divisible into num_replicas=5'
    ):
      _Net(1, 5, 1, test_cells.Batch())
    with self.assertRaisesRegex(
      ValueError, r'num_replicas=3 .*num_partitions=2 .* need 6 devices, .* 4 C'
    ):
      _Net(2, 3, 1, test_cells.Batch())
    with self.assertRaisesRegex(ValueError, 'num_replicas=0 .*1 or more'):
      _Net(1, 0, 1, test_cells.Batch())

  def testAFailureNamesTheReplica(self):
    class _Fails(test_cells.Linear):
      def FProp(self, theta, inputs):
        # Only replica 1 has rows that are so large.
        low = tf.debugging.assert_less(
          inputs, tf.constant(100.0, inputs.dtype), message='on purpose'
        )
        with tf.control_dependencies([low]):
          return super().FProp(theta, inputs)

    batch = test_cells.Batch()
    batch.inputs += 1000.0 * tf.cast(tf.range(24) >= 12, tf.float64)[:, None]
    cells = _Cells()
    cells[0].cls = _Fails
    net = gpipe.GPipe.Params().Set(
      name='net',
      cells=cells,
      num_partitions=2,
      num_replicas=2,
      num_micro_batches=2,
      dtype=tf.float64,
    )
    net = net.Instantiate()
    net.Plan(batch)
    net.InstantiateVariables()
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      net.ComputeGradients(batch, 0)
    self.assertIn(
      'in cell 0 (net/linear, _Fails) of partition 0 of replica 1 on '
      '/device:CPU:2',
      caught.exception.__notes__[0],
    )


class SumsTest(tf.test.TestCase):
  def testSumGradientsOnTheVariablesDevice(self):
    variables = []
    for d in (1, 0):
      with tf.device(f'/device:CPU:{d}'):
        variables.append(tf.Variable([0.0, 0.0]))
    trees = [[tf.constant([1.0, 2.0 * r]), None] for r in range(3)]
    first, second = replicas.SumGradients(trees, variables, tf.constant(0.5))
    self.assertAllEqual(first, [1.5, 3.0])
    self.assertEndsWith(first.device, 'CPU:1')
    self.assertIsNone(second)

  def testSumReportsOfEachStage(self):
    cells = tuple(p.Instantiate() for p in test_cells.Cells()[:2])
    stages = [
      stage_lib.Stage(k, k, (cells[k],), f'/device:CPU:{k}') for k in range(2)
    ]
    reports = [
      [NestedMap(x={'a': tf.constant(10.0**k + r)}) for k in range(2)]
      for r in range(2)
    ]
    sums = replicas.SumReports(reports, stages)
    self.assertAllEqual([s.x['a'] for s in sums], [3.0, 21.0])
    self.assertEndsWith(sums[1].x['a'].device, 'CPU:1')


if __name__ == '__main__':
  tf.test.main()
