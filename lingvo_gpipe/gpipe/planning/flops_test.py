"""Tests for flops: counts by hand."""

from __future__ import annotations

import os
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import flops


def _Count(fn, *shapes):
  """FLOPs of fn on placeholders of these shapes."""
  with tf.Graph().as_default() as graph:
    fn(*[tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes])
  return flops.CountFlops(graph)


def _CountGradient(fn, *shapes):
  """FLOPs of the gradient of fn by all its arguments."""
  with tf.Graph().as_default() as graph:
    args = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
      tape.watch(args)
      y = fn(*args)
    forward = flops.CountFlops(graph)
    dy = tf.compat.v1.placeholder(y.dtype, y.shape)
    tape.gradient(y, args, dy)
  return flops.CountFlops(graph) - forward


def _Conv(stride, padding):
  return lambda x, w: tf.nn.conv2d(x, w, stride, padding)


def _Depthwise(stride, padding):
  return lambda x, w: tf.nn.depthwise_conv2d(
    x, w, [1, stride, stride, 1], padding
  )


class CountFlopsTest(parameterized.TestCase):
  def testMatMul(self):
    self.assertEqual(_Count(tf.matmul, [7, 3], [3, 5]), 2 * 7 * 3 * 5)
    self.assertEqual(
      _CountGradient(tf.matmul, [7, 3], [3, 5]), 2 * 2 * 7 * 3 * 5
    )

  def testBatchMatMul(self):
    shapes = [2, 4, 7, 3], [2, 4, 5, 3]
    expected = 2 * (2 * 4) * 7 * 3 * 5

    def _Product(a, b):
      return tf.matmul(a, b, transpose_b=True)

    self.assertEqual(_Count(_Product, *shapes), expected)
    self.assertEqual(_CountGradient(_Product, *shapes), 2 * expected)

  @parameterized.parameters(
    (1, 'SAME', 9, 8),
    (1, 'VALID', 7, 6),
    (2, 'SAME', 5, 4),
    (2, 'VALID', 4, 3),
  )
  def testConvolution(self, stride, padding, height, width):
    shapes = [2, 9, 8, 3], [3, 3, 3, 5]
    expected = 2 * (2 * height * width * 5) * (3 * 3 * 3)
    fn = _Conv(stride, padding)
    self.assertEqual(_Count(fn, *shapes), expected)
    self.assertEqual(_CountGradient(fn, *shapes), 2 * expected)

  @parameterized.parameters(
    (1, 'SAME', 9, 8),
    (2, 'SAME', 5, 4),
    (1, 'VALID', 7, 6),
  )
  def testDepthwiseConvolution(self, stride, padding, height, width):
    shapes = [2, 9, 8, 6], [3, 3, 6, 2]
    expected = 2 * (2 * height * width * 12) * (3 * 3)
    fn = _Depthwise(stride, padding)
    self.assertEqual(_Count(fn, *shapes), expected)
    self.assertEqual(_CountGradient(fn, *shapes), 2 * expected)

  @parameterized.parameters(
    ('btd,dh->bth', [[2, 7, 3], [3, 5]], 2 * 2 * 7 * 3 * 5),
    ('btd,dnh->btnh', [[2, 7, 3], [3, 4, 5]], 2 * 2 * 7 * 3 * 4 * 5),
    ('...d,dh->...h', [[2, 7, 3], [3, 5]], 2 * 2 * 7 * 3 * 5),
    ('...qd,...kd->...qk', [[6, 7, 3], [6, 5, 3]], 2 * 6 * 7 * 5 * 3),
    ('a,b->ab', [[4], [6]], 4 * 6),
    ('ab->ba', [[4, 6]], 0),
    ('ab->a', [[4, 6]], 4 * 6),
  )
  def testEinsum(self, equation, shapes, expected):
    self.assertEqual(
      _Count(lambda *args: tf.einsum(equation, *args), *shapes), expected
    )

  def testEinsumGradient(self):
    expected = 2 * (2 * 2 * 7 * 3 * 5)
    self.assertEqual(
      _CountGradient(
        lambda a, b: tf.einsum('btd,dh->bth', a, b), [2, 7, 3], [3, 5]
      ),
      expected,
    )

  def testElementwise(self):
    self.assertEqual(_Count(tf.add, [4, 5], [4, 5]), 20)

  def testFunctionsAreLookedInto(self):
    inner = tf.function(tf.matmul)

    @tf.function
    def _Outer(a, b):
      return inner(a, b) + inner(a, b)

    shapes = [7, 3], [3, 5]
    product = 2 * 7 * 3 * 5
    self.assertEqual(_Count(inner, *shapes), product)
    self.assertEqual(_Count(_Outer, *shapes), 2 * product + 7 * 5)
    self.assertEqual(_CountGradient(inner, *shapes), 2 * product)

  def testLoopsCountOneIteration(self):
    def _Loop(a):
      return tf.while_loop(
        lambda i, x: i < 10,
        lambda i, x: (i + 1, tf.matmul(x, a)),
        (tf.constant(0), a),
      )

    # The product, the comparison, and the additions of i and of the loop's own
    # counter.
    self.assertEqual(_Count(_Loop, [4, 4]), 2 * 4 * 4 * 4 + 3)

  def testConditionalsCountTheLongestBranch(self):
    def _Cond(a):
      condition = tf.compat.v1.placeholder(tf.bool, [])
      return tf.cond(condition, lambda: tf.matmul(a, a), lambda: a)

    self.assertEqual(_Count(_Cond, [4, 4]), 2 * 4 * 4 * 4)

  def testOnlySomeOperations(self):
    with tf.Graph().as_default() as graph:
      x = tf.compat.v1.placeholder(tf.float32, [4, 4])
      product, total = tf.matmul(x, x), tf.add(x, x)
    self.assertEqual(flops.CountFlops(graph, [product.op]), 2 * 4 * 4 * 4)
    self.assertEqual(flops.CountFlops(graph, [total.op]), 4 * 4)
    self.assertEqual(flops.CountFlops(graph), 2 * 4 * 4 * 4 + 4 * 4)

  def testPrintsNothing(self):
    # The profiler prints from C++, below Python's streams.
    with tempfile.TemporaryFile() as file:
      saved = os.dup(1)
      try:
        os.dup2(file.fileno(), 1)
        _Count(tf.matmul, [7, 3], [3, 5])
      finally:
        os.dup2(saved, 1)
        os.close(saved)
      file.seek(0)
      self.assertEqual(file.read(), b'')


if __name__ == '__main__':
  absltest.main()
