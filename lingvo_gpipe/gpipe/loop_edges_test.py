"""Tests of loop_edges: what leaves in a row is there in the next one."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import (
  gpipe,
  loop_edges,
  micro_batch,
  placement,
  stage,
  test_cells,
)
from lingvo_gpipe.gpipe.schedules import loop_table, schedule

NestedMap = nested_map.NestedMap
_NUM_MICRO_BATCHES = 2


def setUpModule():
  placement.ConfigureLogicalCpus(3)


class _Stash(test_cells.Linear):
  def Stashes(self):
    return ('far',)

  def FProp(self, theta, inputs):
    self.Stash('far', inputs)
    return super().FProp(theta, inputs)


class _Pop(test_cells.Linear):
  def Pops(self):
    return ('far',)

  def FProp(self, theta, inputs):
    return super().FProp(theta, inputs + self.Pop('far'))


def _Edges():
  """Of three stages; a skip connection leads from the first to the last."""
  batch = micro_batch.Specs(test_cells.Batch())
  cells = [
    cls.Params().Set(name=name, input_dim=4, output_dim=4)
    for cls, name in ((_Stash, 'a'), (test_cells.Linear, 'b'), (_Pop, 'c'))
  ]
  net = gpipe.GPipe.Params().Set(
    name='net',
    cells=[*cells, *test_cells.Cells()[-1:]],
    dtype=tf.float64,
    splits=[1, 1, 2],
    num_micro_batches=_NUM_MICRO_BATCHES,
    schedule='gpipe',
  )
  net = net.Instantiate()
  net.Plan(batch)
  net.InstantiateVariables()
  divided = net.Divide(batch)
  functions = net._StageFunctions(divided.MicroSpecs(batch), None)[0]
  table = loop_table.MakeLoopTable(
    schedule.MakeSchedule('gpipe', 3, _NUM_MICRO_BATCHES, 3)
  )
  return loop_edges.Edges(functions, table), functions


class LoopEdgesTest(tf.test.TestCase):
  def testEdges(self):
    edges, unused_functions = _Edges()
    self.assertEqual([edges.From(k) for k in range(3)], [[0, 2], [1], []])
    self.assertEqual([edges.To(k) for k in range(3)], [[], [0], [1, 2]])

  def testThereAndBack(self):
    edges, functions = _Edges()
    devices = [f.stage.device for f in functions]
    state = NestedMap(row={d: tf.constant(0) for d in devices})
    edges.Start(state)
    shape = functions[0].spec.carried.outputs.shape
    sent = tf.random.stateless_normal(shape, [1, 2], dtype=tf.float64)
    far = 2.0 * sent
    # Row 0 of stage 0 is the forward pass of micro-batch 0.
    edges.Send(0, stage.Carried(sent, {'far': far}), tf.constant(0.0), state)
    edges.Cross(state)
    self.assertEndsWith(state.sending[0][0].device, devices[1])
    self.assertEndsWith(state.sending[2][0].device, devices[2])
    for device in devices:
      state.row[device] += 1
    edges.Receive(state)
    self.assertEqual(state.sending[0][0].shape[0], 0)
    index = tf.constant(0)
    received = edges.Received(1, index, state.activations, None)
    self.assertAllEqual(received.outputs, sent)
    self.assertEmpty(received.skips)
    with tf.device(devices[2]):
      (skip,) = state.activations[2]
      self.assertAllEqual(skip.read(0), far)
    for arrays in (*state.activations, *state.gradients):
      for array in arrays:
        array.mark_used()

  def testFirstInputs(self):
    edges, unused_functions = _Edges()
    inputs = tf.reshape(tf.range(6.0), [2, 3])
    received = edges.Received(0, tf.constant(1), [], inputs)
    self.assertAllEqual(received.outputs, [3.0, 4.0, 5.0])

  def testGradientsLeaveAfterTheClock(self):
    edges, unused_functions = _Edges()
    state = NestedMap(returning=[None, None, None])
    seen = []

    def _Clock(sent):
      seen.extend(sent)
      return tf.constant(1.0)

    gradients = {None: [tf.constant(2.0)], 'far': [tf.constant(3.0)]}
    edges.Return(2, gradients, _Clock, state)
    self.assertEqual([float(x) for x in seen], [2.0, 3.0])
    self.assertIsNone(state.returning[0])
    self.assertAllEqual(state.returning[1], [2.0])
    self.assertAllEqual(state.returning[2], [3.0])


if __name__ == '__main__':
  tf.test.main()
