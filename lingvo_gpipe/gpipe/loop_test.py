"""Tests of loop: what it keeps, in which order it runs, what the clock says."""

import itertools
import threading

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, placement, test_cells


def setUpModule():
  placement.ConfigureLogicalCpus(3)


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
  net.Plan(micro_batch.Specs(batch))
  net.InstantiateVariables()
  return net


def _Step(net):
  return tf.function(net.ComputeGradients, autograph=False)


def _AllOps(graph):
  """The ops of a graph and of the functions in it, however deep."""
  definition = graph.as_graph_def()
  yield from definition.node
  for function in definition.library.function:
    yield from function.node_def


def _RingSlots(net, batch):
  """The slots of the lists of a step's loop that hold [6, 4] or [3, 4]."""
  graph = (
    _Step(net)
    .get_concrete_function(
      micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
    )
    .graph
  )
  slots = []
  for function in graph.as_graph_def().library.function:
    constants = {
      n.name: tf.make_ndarray(n.attr['value'].tensor)
      for n in function.node_def
      if n.op == 'Const'
    }
    for node in function.node_def:
      if node.op == 'TensorListReserve':
        shape, size = (constants[x.split(':')[0]] for x in node.input[:2])
        if list(shape) == [-1, 4]:
          slots.append(int(size) - 1)  # Without the dummy slot.
  return sorted(slots)


class RingsTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(4, 8)
  def testFillDrainKeepsAllMicroBatchesAnd1F1BOnlyAsManyAsPartitions(self, m):
    batch = test_cells.Batch(batch_size=3 * m)
    cells = [*_Linears(2), *test_cells.Cells()[-1:]]
    kwargs = {'splits': [1, 1, 1], 'num_micro_batches': m}
    # Activations into partitions 1 and 2, gradients into partitions 0 and 1.
    fill_drain = _RingSlots(
      _Net(cells, batch, schedule='gpipe', **kwargs), batch
    )
    self.assertEqual(max(fill_drain), m)
    slots = _RingSlots(_Net(cells, batch, schedule='1f1b', **kwargs), batch)
    self.assertLen(slots, 4)
    self.assertLessEqual(max(slots), 3)

  def testOnlyWhatCrossesBordersIsKept(self):
    # However many cells lie between the borders.
    for depth in (1, 5):
      cells = [*_Linears(depth), *test_cells.Cells()[-1:]]
      batch = test_cells.Batch()
      net = _Net(cells, batch, splits=[depth, 1], num_micro_batches=8)
      self.assertLen(_RingSlots(net, batch), 2)

  def testOnePartitionKeepsNothing(self):
    batch = test_cells.Batch()
    for policy in ('none', 'partition', 'cell'):
      net = _Net(
        test_cells.Cells(), batch, num_micro_batches=8, rematerialize=policy
      )
      self.assertEmpty(_RingSlots(net, batch))


class GraphTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters('gpipe', '1f1b', 'eager_1f1b')
  def testTheGraphDoesNotGrowWithMicroBatches(self, schedule):
    sizes = []
    for m in (2, 16):
      batch = test_cells.Batch(batch_size=2 * m)
      net = _Net(
        test_cells.Cells(),
        batch,
        num_partitions=2,
        num_micro_batches=m,
        schedule=schedule,
      )
      graph = (
        _Step(net)
        .get_concrete_function(
          micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
        )
        .graph
      )
      sizes.append(len(list(_AllOps(graph))))
    # Two more passes are under conditions: with few micro-batches no row is
    # without some.
    self.assertAllClose(sizes[0], sizes[1], rtol=0.05)

  def testThereIsOneLoop(self):
    batch = test_cells.Batch()
    net = _Net(test_cells.Cells(), batch, num_partitions=2, num_micro_batches=8)
    graph = (
      _Step(net)
      .get_concrete_function(
        micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
      )
      .graph
    )
    loops = [n for n in _AllOps(graph) if n.op in ('While', 'StatelessWhile')]
    self.assertLen(loops, 1)

  @parameterized.parameters('gpipe', '1f1b', 'eager_1f1b')
  def testInARowOnlyOutputsAndTheirGradientsCross(self, schedule):
    """Any other message would let a device wait for another's rows."""
    batch = test_cells.Batch()
    cells = [*_Linears(2), *test_cells.Cells()[-1:]]
    net = _Net(
      cells,
      batch,
      splits=[1, 1, 1],
      num_micro_batches=8,
      schedule=schedule,
    )
    graph = (
      _Step(net)
      .get_concrete_function(
        micro_batch.Specs(batch), tf.TensorSpec([], tf.int64)
      )
      .graph
    )
    functions = {
      f.signature.name: f for f in graph.as_graph_def().library.function
    }
    (loop,) = (n for n in _AllOps(graph) if n.op in ('While', 'StatelessWhile'))
    crossing = _Crossing(functions[loop.attr['body'].func.name].node_def)
    first, second, third = (f'/device:CPU:{i}' for i in range(3))
    self.assertCountEqual(
      crossing,
      [(first, second), (second, third), (third, second), (second, first)],
    )


def _Crossing(nodes):
  """(from device, to device) of tensors and control edges between nodes."""
  devices = {n.name: n.device for n in nodes}
  found = set()
  for node in nodes:
    for name in node.input:
      source = name.lstrip('^').split(':')[0]
      device = devices.get(source)
      if device and node.device and device != node.device:
        found.add((name, device, node.device))
  return [(device, to) for _, device, to in found]


def _Logged(log, cells=('a', 'b')):
  """Cells that note when they run forward and backward."""
  lock = threading.Lock()

  def _Log(event, x, *after):
    def _Run(x, *unused_after):
      with lock:
        log.append(event)
      return x

    logged = tf.numpy_function(_Run, [x, *after], x.dtype, stateful=False)
    return tf.ensure_shape(logged, x.shape)

  class _Logging(test_cells.Linear):
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

  return [
    _Logging.Params().Set(name=name, input_dim=4, output_dim=4)
    for name in cells
  ] + test_cells.Cells()[-1:]


class OrderTest(parameterized.TestCase, tf.test.TestCase):
  def _Events(self, **kwargs):
    log = []
    batch = test_cells.Batch()
    net = _Net(
      _Logged(log), batch, num_micro_batches=4, splits=[1, 2], **kwargs
    )
    step = _Step(net)
    step(batch, tf.constant(0, tf.int64))  # Traces.
    for _ in range(3):
      log.clear()
      step(batch, tf.constant(0, tf.int64))
      yield (
        ''.join(event for name, event in log if name == 'a'),
        ''.join(event for name, event in log if name == 'b'),
      )

  def testFillDrainRecomputesOneMicroBatchAtATime(self):
    for a, b in self._Events(schedule='gpipe', rematerialize='partition'):
      self.assertEqual(a, 'FFFF' + 'FBFBFBFB')
      self.assertEqual(b, 'FBFBFBFB')

  def testWithoutRematerializationNothingRunsTwice(self):
    for a, b in self._Events(schedule='gpipe', rematerialize='none'):
      self.assertEqual(a, 'FFFF' + 'BBBB')
      self.assertEqual(b, 'FBFBFBFB')

  def testOneForwardOneBackward(self):
    for a, b in self._Events(schedule='1f1b', rematerialize='none'):
      self.assertEqual(a, 'FFBFBFBB')
      self.assertEqual(b, 'FBFBFBFB')

  def testCellsOfTheLastPartitionAreRecomputedButTheLastOne(self):
    for a, b in self._Events(schedule='1f1b', rematerialize='cell'):
      self.assertEqual(a, 'FF' + 'FBF' * 2 + 'FB' * 2)
      # b is the first of two cells.
      self.assertEqual(b, 'FFB' * 4)


class ClockTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.product(
    schedule=('gpipe', '1f1b', 'eager_1f1b'), policy=('none', 'partition')
  )
  def testTimesFollowTheDependencies(self, schedule, policy):
    batch = test_cells.Batch()
    net = _Net(
      test_cells.Cells(),
      batch,
      num_partitions=3,
      num_micro_batches=4,
      schedule=schedule,
      rematerialize=policy,
    )
    step = _Step(net)
    times = np.stack(step(batch, tf.constant(0, tf.int64)).times)
    self.assertEqual(times.shape, (3, 4, 7))
    times, left = times[..., :6], times[..., 6]
    # In every slot, and from the forward to the backward slot.
    self.assertAllGreaterEqual(np.diff(times, axis=-1), 0.0)
    forward_end, backward_start = times[..., 1], times[..., 4]
    # Stages begin a micro-batch when the one before is through with it.
    self.assertAllGreaterEqual(times[1:, :, 0] - forward_end[:-1], 0.0)
    self.assertAllGreaterEqual(backward_start[:-1] - left[1:], 0.0)
    # Gradients leave within the backward pass.
    self.assertAllGreaterEqual(left - backward_start, 0.0)
    self.assertAllGreaterEqual(times[..., 5] - left, 0.0)
    # A device does one thing at a time.
    for device in times:
      slots = sorted(
        [tuple(x[:2]) for x in device] + [tuple(x[2::3]) for x in device]
      )
      for (_, end), (start, _) in itertools.pairwise(slots):
        self.assertGreaterEqual(start, end)


class RowsTest(tf.test.TestCase):
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
    net = _Net(
      cells, batch, num_micro_batches=4, splits=[1, 2], schedule='gpipe'
    )
    net.ComputeGradients(batch, 0)
    rows = batch.inputs[::6, 0].numpy().tolist()
    # Forward in ascending order, then recomputed in ascending order.
    self.assertEqual(seen, rows + rows)


if __name__ == '__main__':
  tf.test.main()
