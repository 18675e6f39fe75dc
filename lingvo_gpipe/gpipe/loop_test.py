"""Tests of loop: what the loops keep, and in which order they sum."""

import threading

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, placement, test_cells


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Linears(count, name='linear'):
  return [
    test_cells.Linear.Params().Set(
      name=f'{name}_{i}', input_dim=4, output_dim=4
    )
    for i in range(count)
  ]


def _Net(cells, batch, **kwargs):
  net = gpipe.GPipe.Params().Set(
    name='net', cells=cells, dtype=tf.float64, **kwargs
  )
  net = net.Instantiate()
  net.Plan(batch)
  net.InstantiateVariables()
  return net


def _Loops(net, batch):
  """The While ops of a training step, in order."""
  step = tf.function(net.ComputeGradients, autograph=False)
  graph = step.get_concrete_function(
    micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
  ).graph
  return [
    op
    for op in graph.get_operations()
    if op.type in ('While', 'StatelessWhile')
  ]


class LoopTest(tf.test.TestCase):
  def _ListsOf(self, cells, **kwargs):
    batch = test_cells.Batch()
    net = _Net(cells, batch, num_micro_batches=4, **kwargs)
    forward = _Loops(net, batch)[0]
    return sum(output.dtype == tf.variant for output in forward.outputs)

  def testTheForwardLoopKeepsPartitionInputsOnly(self):
    head = test_cells.Cells()[-1:]
    # However many cells lie between the borders, one list for one border.
    for depth in (1, 5):
      cells = [*_Linears(depth), *head]
      self.assertEqual(self._ListsOf(cells, splits=[depth, 1]), 1)
    # NestedMap(x, skip, ids, nothing): a list each for three tensors.
    cells = test_cells.Cells()
    self.assertEqual(self._ListsOf(cells, splits=[3, 3]), 3)

  def testOnePartitionHasOneLoopAndKeepsNothing(self):
    batch = test_cells.Batch()
    net = _Net(test_cells.Cells(), batch, num_micro_batches=4)
    (loop,) = _Loops(net, batch)
    self.assertEmpty([o for o in loop.outputs if o.dtype == tf.variant])

  def testNoMoreMicroBatchesUnderWayThanPartitions(self):
    batch = test_cells.Batch()
    net = _Net(test_cells.Cells(), batch, num_micro_batches=8, num_partitions=2)
    loops = _Loops(net, batch)
    self.assertLen(loops, 2)
    for loop in loops:
      self.assertEqual(loop.get_attr('parallel_iterations'), 2)

  def testMicroBatchesAreRowsOfTheMiniBatchInOrder(self):
    seen = []

    class _Spy(test_cells.Linear):
      def FProp(self, theta, inputs):
        def _See(x):
          seen.append(float(x[0, 0]))
          return x

        x = tf.numpy_function(_See, [inputs], inputs.dtype)
        return super().FProp(theta, tf.ensure_shape(x, inputs.shape))

    batch = test_cells.Batch()
    spy = _Spy.Params().Set(name='spy', input_dim=4, output_dim=4)
    cells = [spy, *_Linears(1), *test_cells.Cells()[-1:]]
    net = _Net(cells, batch, num_micro_batches=4, splits=[1, 2])
    net.ComputeGradients(batch, 0)
    rows = batch.inputs[::6, 0].numpy().tolist()
    # Forward in ascending order, then recomputed in ascending order.
    self.assertEqual(seen, rows + rows)


class OrderTest(tf.test.TestCase):
  def testAPartitionRecomputesOneMicroBatchAtATime(self):
    """Forward passes of one partition never overlap its own backward ones.

    A partition that ran ahead would hold the activations of several
    micro-batches at once.
    """
    log, lock = [], threading.Lock()

    def _Log(event, x, *after):
      def _Run(x, *unused_after):
        with lock:
          log.append(event)
        return x

      logged = tf.numpy_function(_Run, [x, *after], x.dtype, stateful=False)
      return tf.ensure_shape(logged, x.shape)

    class _Logged(test_cells.Linear):
      def FProp(self, theta, inputs):
        name = self.params.name

        @tf.custom_gradient
        def _Op(w, x):
          return _Log((name, 'F'), w, x), lambda dw: (
            _Log((name, 'B'), dw),
            tf.zeros_like(x),
          )

        w = _Op(theta.w, inputs)
        return super().FProp(nested_map.NestedMap(w=w, b=theta.b), inputs)

    batch = test_cells.Batch()
    cells = [
      _Logged.Params().Set(name=name, input_dim=4, output_dim=4)
      for name in ('a', 'b')
    ]
    cells += test_cells.Cells()[-1:]
    net = _Net(cells, batch, num_micro_batches=4, splits=[1, 2])
    step = tf.function(net.ComputeGradients, autograph=False)
    step(batch, tf.constant(0, tf.int64))  # Traces.
    for _ in range(3):
      log.clear()
      step(batch, tf.constant(0, tf.int64))
      events = [event for name, event in log if name == 'a']
      self.assertEqual(events, ['F'] * 4 + ['F', 'B'] * 4)
      events = [event for name, event in log if name == 'b']
      self.assertEqual(events, ['F', 'B'] * 4)


if __name__ == '__main__':
  tf.test.main()
