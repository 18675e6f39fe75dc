"""Tests of residuals: what stands between a forward and a backward pass."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.gpipe import residuals


def _Split(function, shape=(2, 3)):
  """The residuals of function(x, w) for d sum(function) / d (x, w)."""
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, shape, name='x')
    w = tf.compat.v1.placeholder(tf.float32, [3, 4], name='w')
    y = function(x, w)
    forward = graph.get_operations()
    dy = tf.compat.v1.placeholder(tf.float32, y.shape, name='dy')
    gradients = [g for g in tf.gradients(y, [x, w], [dy]) if g is not None]
  return residuals.Split(
    gradients, forward=forward, feeds=[x, w, dy], varying=[x]
  )


def _Names(tensors):
  return [x.op.name for x in tensors]


class ResidualsTest(tf.test.TestCase):
  def testAProductKeepsNothingButReadsItsInputs(self):
    split = _Split(lambda x, w: x @ w)
    self.assertEqual(split.kept, [])
    self.assertEqual(_Names(split.feeds), ['x', 'w', 'dy'])

  def testATanhKeepsItsOutputOnly(self):
    split = _Split(lambda x, w: tf.tanh(x @ w, name='tanh'))
    self.assertEqual(_Names(split.kept), ['tanh'])

  def testViewsAreTakenAgain(self):
    split = _Split(
      lambda x, w: tf.square(tf.reshape(tf.tanh(x, name='tanh'), [3, 2]))
    )
    self.assertEqual(_Names(split.kept), ['tanh'])

  def testWhatWeightsAloneDetermineIsNotKept(self):
    split = _Split(lambda x, w: x @ tf.exp(w, name='exp'))
    self.assertEqual(split.kept, [])
    self.assertIn('w', _Names(split.feeds))

  def testShapesAreConstants(self):
    split = _Split(lambda x, w: tf.reshape(x + tf.zeros([1, 3]), [-1]))
    self.assertEqual(split.kept, [])
    for tensor, value in split.constants:
      self.assertEqual(tensor.dtype.as_numpy_dtype, value.dtype)
      self.assertIn(tuple(np.ravel(value)), {(2, 3), (1, 3), (6,)})

  def testTheStacksOfALoopDoNotLeaveTheGraph(self):
    def _Loop(x, w):
      del w
      return tf.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, tf.sin(x)), (0, x)
      )[1]

    split = _Split(_Loop)
    for tensor in split.kept:
      self.assertNotIn(tensor.dtype, (tf.variant, tf.resource))
    self.assertIn('x', _Names(split.feeds))

  def testFindBetween(self):
    with tf.Graph().as_default():
      a, b, c = (tf.compat.v1.placeholder(tf.float32, []) for _ in range(3))
      with tf.control_dependencies([b]):
        d = a + 1.0
    between = residuals.FindBetween([d], [c, b, a])
    self.assertEqual([x.ref() for x in between.feeds], [b.ref(), a.ref()])
    self.assertEqual([op.type for op in between.operations], ['Const', 'AddV2'])
    between = residuals.FindBetween([c], [c, a])
    self.assertEqual([x.ref() for x in between.feeds], [c.ref()])
    self.assertEmpty(between.operations)


if __name__ == '__main__':
  tf.test.main()
