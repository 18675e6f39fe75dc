"""Tests of activation."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.layers import activation


class ActivationTest(tf.test.TestCase):
  def testApply(self):
    x = np.array([-2.0, -0.5, 0.0, 3.0])
    sigmoid = 1 / (1 + np.exp(-x))
    for name, expected in {
      'none': x,
      'relu': np.maximum(x, 0),
      'sigmoid': sigmoid,
      'swish': x * sigmoid,
      'tanh': np.tanh(x),
    }.items():
      outputs = activation.Apply(name, tf.constant(x))
      self.assertAllClose(outputs, expected, msg=name)
    self.assertAllClose(
      activation.Apply('gelu', tf.constant([1.0])), [0.8413447]
    )

  def testCheck(self):
    for name in activation.NAMES:
      activation.Check(name, 'net/dense')
      activation.Apply(name, tf.constant(0.0))
    with self.assertRaisesRegex(
      ValueError, "net/dense: activation='Relu' is not known; use one of none, "
    ):
      activation.Check('Relu', 'net/dense')


if __name__ == '__main__':
  tf.test.main()
