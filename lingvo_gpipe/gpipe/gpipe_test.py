"""The GPipe layer: placement, graph size, checks, failures inside a cell."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, fprop_context, metrics, nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, placement, test_cells

NestedMap = nested_map.NestedMap


def setUpModule():
  placement.ConfigureLogicalCpus(4)


def _Params(cells=None, **kwargs):
  cells = test_cells.Cells() if cells is None else cells
  return gpipe.GPipe.Params().Set(name='net', cells=cells, **kwargs)


def _Net(batch, **kwargs):
  net = _Params(**kwargs).Set(dtype=batch.inputs.dtype).Instantiate()
  net.Plan(micro_batch.Specs(batch))
  net.InstantiateVariables()
  return net


def _ConcreteStep(net, batch):
  step = tf.function(net.ComputeGradients, autograph=False)
  return step.get_concrete_function(
    micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
  )


def _AllOps(graph):
  """The ops of a graph and of the functions (loop bodies) in it."""
  yield from graph.get_operations()
  for name in graph._functions:  # pylint: disable=protected-access
    definition = graph._get_function(name)  # pylint: disable=protected-access
    inner = getattr(definition, 'graph', None)
    if inner is not None and inner is not graph:
      yield from _AllOps(inner)


class PlacementTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(1, 2, 3, 4)
  def testVariablesAndGradientsLiveOnTheirPartitionsDevice(self, k):
    batch = test_cells.Batch()
    net = _Net(batch, num_partitions=k, num_micro_batches=2)
    result = net.ComputeGradients(batch, 0)
    for stage in net.plan.stages:
      for cell in net.cells[stage.start : stage.end]:
        for variable in tf.nest.flatten(cell.vars):
          self.assertEndsWith(variable.device, stage.device)
      grads = result.grads.cells[stage.start : stage.end]
      for gradient in tf.nest.flatten(grads):
        if gradient is not None:
          self.assertEndsWith(gradient.device, stage.device)
    self.assertLen({stage.device for stage in net.plan.stages}, k)

  def testMatrixProductsRunOnTheirCellsDevice(self):
    batch = test_cells.Batch()
    net = _Net(batch, num_partitions=3, num_micro_batches=2)
    graph = _ConcreteStep(net, batch).graph
    seen = set()
    for op in _AllOps(graph):
      if op.type == 'MatMul':
        seen.add(tf.DeviceSpec.from_string(op.device).to_string())
    expected = {
      tf.DeviceSpec.from_string(stage.device).to_string()
      for stage in net.plan.stages
    }
    self.assertEqual(seen, expected)


class GraphTest(tf.test.TestCase):
  def testTheGraphDoesNotGrowWithMicroBatches(self):
    sizes = []
    for m in (2, 16):
      batch = test_cells.Batch(batch_size=2 * m)
      net = _Net(batch, num_partitions=2, num_micro_batches=m)
      sizes.append(len(list(_AllOps(_ConcreteStep(net, batch).graph))))
    self.assertEqual(sizes[0], sizes[1])

  def testRematerializationRunsEarlyPartitionsTwiceAndTheLastOnce(self):
    calls = []

    class _Counted(test_cells.Linear):
      def FProp(self, theta, inputs):
        def _Count(x):
          calls.append(self.params.name)
          return x

        x = tf.numpy_function(_Count, [inputs], inputs.dtype)
        x = tf.ensure_shape(x, inputs.shape)
        return super().FProp(theta, x)

    cells = [
      _Counted.Params().Set(name=name, input_dim=4, output_dim=4)
      for name in ('a', 'b')
    ]
    cells.append(test_cells.Cells()[-1])
    batch = test_cells.Batch()
    net = _Net(batch, cells=cells, splits=[1, 2])
    calls.clear()
    net.ComputeGradients(batch, 0)
    m = net.plan.num_micro_batches
    self.assertEqual(calls.count('a'), 2 * m)
    self.assertEqual(calls.count('b'), m)


class ChecksTest(parameterized.TestCase, tf.test.TestCase):
  def testOrderOfCalls(self):
    batch = test_cells.Batch()
    net = _Params(dtype=tf.float64).Instantiate()
    with self.assertRaisesRegex(RuntimeError, r'net: call Plan\(batch_spec\)'):
      net.InstantiateVariables()
    net.Plan(micro_batch.Specs(batch))
    net.InstantiateVariables()
    with self.assertRaisesRegex(RuntimeError, 'plan before Instantiate'):
      net.Plan(micro_batch.Specs(batch))

  @parameterized.parameters(
    ({'cells': []}, 'net: its param "cells" is empty'),
    ({'num_partitions': 7}, '6 cells cannot fill 7 partitions'),
    (
      {'num_micro_batches': 2, 'micro_batch_size': 4},
      'set num_micro_batches=2 or micro_batch_size=4, not both',
    ),
    (
      {'num_partitions': 3, 'splits': [2, 4]},
      r'splits=\[2, 4\] makes 2 partitions, but num_partitions=3',
    ),
    ({'splits': []}, 'net: splits is empty'),
    ({'rematerialize': 'always'}, "rematerialize='always'"),
    (
      {'num_partitions': 3, 'jit_compile': [True, False]},
      r'jit_compile=\[True, False\] must be.* each of the 3 partitions',
    ),
  )
  def testWrongParams(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      _Params(**kwargs).Instantiate()

  def testIndivisibleMiniBatch(self):
    batch = test_cells.Batch(batch_size=30)
    with self.assertRaisesRegex(
      ValueError, 'mini-batch 30 is not divisible into num_micro_batches=8; set'
    ):
      _Net(batch, num_micro_batches=8)

  def testAMissingFieldIsNamed(self):
    batch = test_cells.Batch()
    with self.assertRaisesRegex(ValueError, "no field 'images'.*inputs"):
      _Net(batch, input_field='images')

  def testAMissingFieldOfACellIsNamed(self):
    batch = test_cells.Batch()
    net = _Net(batch)
    del batch['weights']
    with self.assertRaisesRegex(
      ValueError, 'net/head asks for the batch fields weights .*inputs, labels'
    ):
      net.ComputeGradients(batch, 0)

  def testWrongDevicesAreRefusedBeforeVariables(self):
    net = _Params(num_partitions=2).Set(dtype=tf.float64).Instantiate()
    with self.assertRaisesRegex(ValueError, 'whatever'):
      net.Plan(test_cells.Batch(), devices=['/device:CPU:0', 'whatever'])

  def testTrainingDoesNotGoThroughFProp(self):
    batch = test_cells.Batch()
    net = _Net(batch)
    with fprop_context.FPropContext(do_eval=False):
      with self.assertRaisesRegex(ValueError, 'use ComputeGradients'):
        net.FProp(net.theta, batch)

  def testALastCellWithoutLossIsNamed(self):
    batch = test_cells.Batch()
    net = _Net(batch, cells=test_cells.Cells()[:2])
    with self.assertRaisesRegex(ValueError, 'net/norm, returns no loss'):
      net.ComputeGradients(batch, 0)
    # Without training it may return anything.
    self.assertEqual(net.FProp(net.theta, batch).shape, batch.inputs.shape)

  def testAScalarThatIsNoSumIsRefused(self):
    class _Scalar(base_layer.BaseLayer):
      def FProp(self, theta, inputs):
        return NestedMap(mean=tf.reduce_mean(inputs))

    batch = test_cells.Batch()
    cells = [*test_cells.Cells()[:2], _Scalar.Params().Set(name='scalar')]
    net = _Net(batch, cells=cells)
    with self.assertRaisesRegex(ValueError, 'wrap it in metrics.WeightedSum'):
      net.FProp(net.theta, batch)

  def testABatchOfZeroWeightHasZeroGradients(self):
    batch = test_cells.Batch()
    batch.weights = tf.zeros_like(batch.weights)
    net = _Net(batch, num_partitions=2, num_micro_batches=2)
    result = net.ComputeGradients(batch, 0)
    self.assertAllEqual(result.loss, 0.0)
    for gradient in tf.nest.flatten(result.grads):
      if gradient is not None:
        self.assertAllEqual(gradient, tf.zeros_like(gradient))


class _Broken(base_layer.BaseLayer):
  """Fails while the graph is built, or while it runs."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('running', False, 'Fail when run.')
    return p

  def FProp(self, theta, inputs):
    if not self.params.running:
      raise KeyError('the original message')
    return tf.debugging.check_numerics(inputs / 0.0, 'broken on purpose')


class FailureTest(tf.test.TestCase):
  def _Cells(self, **kwargs):
    cells = test_cells.Cells()
    cells[1] = _Broken.Params().Set(name='broken', **kwargs)
    return cells

  def testPlanningNamesTheCellAndKeepsTheError(self):
    batch = test_cells.Batch()
    with self.assertRaisesRegex(
      ValueError, 'cell 1 .net/broken, _Broken. .*the original message'
    ) as caught:
      _Net(batch, cells=self._Cells(), num_partitions=2)
    self.assertIsInstance(caught.exception.__cause__, KeyError)

  def testAnEagerErrorKeepsItsTypeAndGainsTheCell(self):
    batch = test_cells.Batch()
    net = _Net(batch, cells=self._Cells(running=True), num_partitions=2)
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      net.ComputeGradients(batch, 0)
    notes = ' '.join(caught.exception.__notes__)
    self.assertIn('in cell 1 (net/broken, _Broken) of partition 0', notes)

  def testAFailingOpStopsTheStepAndNamesTheCell(self):
    batch = test_cells.Batch()
    net = _Net(batch, cells=self._Cells(running=True), num_partitions=2)
    step = tf.function(net.ComputeGradients, autograph=False)
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError, '(?s)broken.*broken on purpose'
    ):
      step(batch, tf.constant(0, tf.int64))


class HalfPrecisionTest(tf.test.TestCase):
  def testBfloat16ComputesAndFloat32Remembers(self):
    batch = test_cells.Batch(batch_size=1024, dtype=tf.float32)
    batch.weights = tf.ones_like(batch.weights)
    results = {}
    for dtype in (tf.float32, tf.bfloat16):
      net = _Params(num_partitions=2, num_micro_batches=64).Set(
        fprop_dtype=dtype
      )
      net = net.Instantiate()
      net.Plan(batch)
      net.InstantiateVariables()
      self.assertEqual(net.theta.cells[0].w.dtype, dtype)
      results[dtype] = net.ComputeGradients(batch, 0)
    half, single = results[tf.bfloat16], results[tf.float32]
    # Counted to 1024 in bfloat16, the weight would stop at 256.
    self.assertAllEqual(half.metrics.loss.weight, 1024.0)
    self.assertAllClose(half.loss, single.loss, rtol=0.02)
    for a, b in zip(
      tf.nest.flatten(half.grads), tf.nest.flatten(single.grads), strict=True
    ):
      if a is not None:
        self.assertEqual(a.dtype, tf.float32)
        self.assertAllClose(a, b, atol=0.02)


class MetricsTest(tf.test.TestCase):
  def testMetricsAreSumsOverTheMiniBatch(self):
    batch = test_cells.Batch()
    net = _Net(batch, num_partitions=2, num_micro_batches=4)
    result = net.ComputeGradients(batch, 0)
    self.assertIsInstance(result.metrics.absolute, metrics.WeightedSum)
    self.assertAllClose(
      result.metrics.absolute.weight, tf.reduce_sum(batch.weights)
    )
    # Per-example outputs belong to evaluation.
    self.assertNotIn('predictions', result.metrics)
    self.assertAllClose(
      result.loss,
      result.metrics.loss.Mean() + sum(result.aux_losses.values()),
    )


if __name__ == '__main__':
  tf.test.main()
