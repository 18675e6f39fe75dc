"""The pipeline equals the plain model, whatever K and M are."""

import functools

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

_LEARNING_RATE = 0.1
_STEPS = 3


def setUpModule():
  placement.ConfigureLogicalCpus(4)


def _Net(
  num_partitions, num_micro_batches, *, dtype, keep_prob, batch, **kwargs
):
  net = (
    gpipe.GPipe.Params()
    .Set(
      name='net',
      cells=test_cells.Cells(keep_prob=keep_prob),
      num_partitions=num_partitions,
      num_micro_batches=num_micro_batches,
      dtype=dtype,
      **kwargs,
    )
    .Instantiate()
  )
  net.Plan(micro_batch.Specs(batch))
  net.InstantiateVariables()
  return net


def _Train(net, batch, wrap):
  """_STEPS steps of SGD; the results of each."""

  @wrap
  def _Step(step):
    result = net.ComputeGradients(batch, step)
    for var, grad in zip(
      tf.nest.flatten(net.vars), tf.nest.flatten(result.grads), strict=True
    ):
      if grad is not None:
        with tf.device(var.device):
          var.assign_sub(_LEARNING_RATE * grad)
    net.ApplyStatistics(result.statistics)
    return result

  return [_Step(tf.constant(t, tf.int64)) for t in range(_STEPS)]


@functools.cache
def _TrainPlain(dtype, num_micro_batches):
  """The plain model's results, and its variables after the last step."""
  batch = test_cells.Batch(dtype=dtype)
  net = _Net(1, num_micro_batches, dtype=dtype, keep_prob=0.7, batch=batch)
  results = []
  for step in range(_STEPS):
    result = plain_model.ComputeGradients(
      net.cells, batch, num_micro_batches, step
    )
    for var, grad in zip(result.variables, result.grads, strict=True):
      var.assign_sub(_LEARNING_RATE * grad)
    net.ApplyStatistics(result.statistics)
    results.append(result)
  return results, [v.numpy() for v in tf.nest.flatten(net.vars)]


def _Eagerly(function):
  return function


_OPTIONS = [
  (schedule, rematerialize, k, m)
  for schedule in ('gpipe', '1f1b', 'eager_1f1b')
  for rematerialize in ('none', 'partition', 'cell')
  for k, m in ((3, 4),)
]
_GRID = [(1, 1), (1, 8), (2, 1), (2, 4), (3, 2), (4, 1), (4, 8)]


class GPipeEqualityTest(parameterized.TestCase, tf.test.TestCase):
  def _Compare(self, k, m, *, dtype, tolerance, wrap, **options):
    batch = test_cells.Batch(dtype=dtype)
    kwargs = {'dtype': dtype, 'keep_prob': 0.7, 'batch': batch}
    piped = _Net(k, m, **kwargs, **options)
    expected, variables = _TrainPlain(dtype, m)
    actual = _Train(piped, batch, wrap)
    close = {'rtol': tolerance, 'atol': tolerance}
    for a, e in zip(actual, expected, strict=True):
      self.assertAllClose(a.loss, e.loss, **close)
      tf.nest.map_structure(
        lambda x, y: self.assertAllClose(x, y, **close), a.metrics, e.metrics
      )
      grads = [g for g in tf.nest.flatten(a.grads) if g is not None]
      self.assertAllClose(grads, e.grads, **close)
      self.assertEqual(a.statistics.keys(), e.statistics.keys())
      for path, sums in e.statistics.items():
        tf.nest.map_structure(
          lambda x, y: self.assertAllClose(x, y, **close),
          a.statistics[path],
          sums,
        )
    # Several updates later, the moving moments among the variables.
    for a, e in zip(tf.nest.flatten(piped.vars), variables, strict=True):
      self.assertAllClose(a, e, **close)
    # The test can fail: training moved the weights.
    start = _Net(1, m, **kwargs)
    self.assertNotAllClose(piped.vars.cells[0].w, start.vars.cells[0].w)
    self.assertNotAllClose(piped.vars.cells[1].mean, start.vars.cells[1].mean)

  @parameterized.parameters(*_GRID)
  def testFloat64(self, k, m):
    wrap = tf.function(autograph=False)
    self._Compare(k, m, dtype=tf.float64, tolerance=1e-10, wrap=wrap)

  @parameterized.parameters(*_OPTIONS)
  def testEverySchedule(self, schedule, rematerialize, k, m):
    self._Compare(
      k,
      m,
      dtype=tf.float64,
      tolerance=1e-10,
      wrap=tf.function(autograph=False),
      schedule=schedule,
      rematerialize=rematerialize,
    )

  @parameterized.parameters((1, 2), (2, 4), (4, 2))
  def testFloat32(self, k, m):
    self._Compare(k, m, dtype=tf.float32, tolerance=1e-5, wrap=tf.function)

  @parameterized.parameters((1, 2), (3, 4))
  def testEager(self, k, m):
    self._Compare(k, m, dtype=tf.float64, tolerance=1e-10, wrap=_Eagerly)

  def testEveryCutScheduleAndPolicyGivesTheSameBits(self):
    self.enter_context(test_cells.NoGraphOptimizer())
    batch = test_cells.Batch(dtype=tf.float32)
    finals = []
    for k, schedule, rematerialize in (
      (1, '1f1b', 'none'),
      (2, 'gpipe', 'partition'),
      (3, '1f1b', 'cell'),
      (4, 'eager_1f1b', 'none'),
    ):
      net = _Net(
        k,
        4,
        dtype=tf.float32,
        keep_prob=0.7,
        batch=batch,
        schedule=schedule,
        rematerialize=rematerialize,
      )
      _Train(net, batch, tf.function(autograph=False))
      finals.append([v.numpy() for v in tf.nest.flatten(net.vars)])
    for other in finals[1:]:
      for a, b in zip(finals[0], other, strict=True):
        np.testing.assert_array_equal(a, b)

  def testMicroBatchesDrawDifferentMasks(self):
    # A weight's gradient is a sum over micro-batches; were their masks the same
    # on equal rows, whole units would have no gradient at all.
    batch = test_cells.Batch()
    batch.inputs = tf.ones_like(batch.inputs)
    batch.labels = tf.ones_like(batch.labels)
    cells = [test_cells.Cells(keep_prob=0.5)[0], test_cells.Cells()[-1]]
    seen = []

    class _Spy(test_cells.Linear):
      def FProp(self, theta, inputs):
        def _See(x):
          seen.append(x)
          return x

        x = tf.numpy_function(_See, [inputs], inputs.dtype)
        return tf.ensure_shape(x, inputs.shape)

    spy = _Spy.Params().Set(name='spy', input_dim=4, output_dim=4)
    net = gpipe.GPipe.Params().Set(
      name='net',
      cells=[cells[0], spy, cells[1]],
      splits=[1, 2],
      num_micro_batches=4,
      dtype=tf.float64,
    )
    net = net.Instantiate()
    net.Plan(batch)
    net.InstantiateVariables()
    net.ComputeGradients(batch, 0)
    self.assertLen(seen, 4)
    masks = {tuple((x != 0).ravel()) for x in seen}
    self.assertLen(masks, 4)

  @parameterized.parameters((1, None), (2, None), (4, 2))
  def testEvaluationPutsPredictionsTogether(self, k, m):
    batch = test_cells.Batch(batch_size=12)
    net = _Net(k, m, dtype=tf.float64, keep_prob=0.5, batch=batch)
    x = batch.inputs
    for cell in net.cells:
      x = cell(x, batch) if cell.BATCH_FIELDS else cell(x)

    @tf.function
    def _Evaluate():
      return net.FProp(net.theta, batch)

    for outputs in (_Evaluate(), net.FProp(net.theta, batch)):
      self.assertAllClose(outputs.predictions, x.predictions, rtol=1e-10)
      self.assertAllClose(outputs.loss.Mean(), x.loss.Mean(), rtol=1e-10)

  def testEvaluationOfAnotherBatchSize(self):
    # Neither 10 nor 1 divides into the 4 micro-batches of training.
    net = _Net(2, 4, dtype=tf.float64, keep_prob=0.5, batch=test_cells.Batch())
    for size in (10, 1):
      batch = test_cells.Batch(batch_size=size)
      x = batch.inputs
      for cell in net.cells:
        x = cell(x, batch) if cell.BATCH_FIELDS else cell(x)
      outputs = net.FProp(net.theta, batch)
      self.assertAllClose(outputs.predictions, x.predictions, rtol=1e-10)
      self.assertAllClose(outputs.loss, x.loss, rtol=1e-10)


if __name__ == '__main__':
  tf.test.main()
