"""Tests of ordering."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import ordering

NestedMap = nested_map.NestedMap


class OrderingTest(tf.test.TestCase):
  def testIdentityLeavesNoneInItsPlace(self):
    nest = NestedMap(a=tf.constant(1), b=(None, tf.constant(2.0)))
    copy = ordering.Identity(nest)
    self.assertIsInstance(copy, NestedMap)
    self.assertAllEqual(copy.a, 1)
    self.assertIsNone(copy.b[0])
    self.assertAllEqual(copy.b[1], 2.0)

  def testReadsWaitForTheResultsOfACall(self):
    order = []

    def _Note(name, x):
      def _Run(x):
        order.append(name)
        return x

      return tf.numpy_function(_Run, [x], x.dtype, stateful=False)

    first = tf.function(lambda x: _Note('first', x), autograph=False)

    def _Both(x):
      made = first(x)
      return made, _Note('then', ordering.After([made], x))

    both = tf.compat.v1.wrap_function(_Both, [tf.TensorSpec([], tf.float32)])
    for _ in range(5):
      both(tf.constant(1.0))
    self.assertEqual(order, ['first', 'then'] * 5)


if __name__ == '__main__':
  tf.test.main()
