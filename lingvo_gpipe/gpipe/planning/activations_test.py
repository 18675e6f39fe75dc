"""Tests for activations."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.gpipe.planning import activations


def _Kept(fn, hand_on=False):
  """Indices of the tensors in (x, w, *fn's tensors) that the gradient reads.

  Args:
    fn: of x and w, both [4, 4]; returns all tensors it makes, the output last.
    hand_on: whether x is an output, too.

  Returns:
    A set of indices.
  """
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [4, 4])
    w = tf.compat.v1.placeholder(tf.float32, [4, 4])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
      tape.watch([x, w])
      made = fn(x, w)
    forward = graph.get_operations()
    dy = tf.compat.v1.placeholder(tf.float32, made[-1].shape)
    gradients = tape.gradient(made[-1], [x, w], dy)
    backward = activations.Needed(
      graph.get_operations()[len(forward) :], gradients
    )
    outputs = [made[-1], tf.identity(x)] if hand_on else [made[-1]]
    kept = activations.ReadByBackward(
      forward, backward, sources=[x], inputs=[x], outputs=outputs
    )
  places = {tensor.ref(): i for i, tensor in enumerate([x, w, *made])}
  return {places[tensor.ref()] for tensor in kept}


class ReadByBackwardTest(absltest.TestCase):
  def testProductKeepsItsInputsButNotWeights(self):
    self.assertEqual(_Kept(lambda x, w: [x @ w]), {0})

  def testOutputsAreNotKept(self):
    # The gradient of tanh reads its result.
    def _Fn(x, w):
      product = x @ w
      return [product, tf.tanh(product)]

    self.assertEqual(_Kept(_Fn), {0})

  def testInnerResultsAreKept(self):
    def _Fn(x, w):
      hidden = tf.tanh(x @ w)
      return [hidden, hidden @ w]

    self.assertEqual(_Kept(_Fn), {0, 2})

  def testSumKeepsNothing(self):
    self.assertEmpty(_Kept(lambda x, w: [x + w]))

  def testReshapedTensorIsTheSameTensor(self):
    def _Fn(x, w):
      hidden = tf.tanh(x @ w)
      flat = tf.reshape(hidden, [16])
      return [hidden, flat, flat * flat]

    self.assertEqual(_Kept(_Fn), {0, 2})

  def testWhatDependsOnWeightsAloneIsNotKept(self):
    def _Fn(x, w):
      square = w * w
      return [square, x @ square]

    self.assertEqual(_Kept(_Fn), {0})

  def testInputHandedOnIsKeptIfItIsRead(self):
    self.assertEqual(_Kept(lambda x, w: [x @ w], hand_on=True), {0})
    self.assertEmpty(_Kept(lambda x, w: [x + w], hand_on=True))


if __name__ == '__main__':
  absltest.main()
