"""Tests of dense."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.layers import dense, gradient_check


def _Layer(**kwargs):
  p = dense.Dense.Params().Set(name='dense', input_dim=3, output_dim=2)
  layer = p.Set(dtype=tf.float64, **kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


class DenseTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(((5, 3),), ((2, 4, 3),), ((1, 2, 2, 3),))
  def testFProp(self, shape):
    layer = _Layer(activation='relu')
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw(shape, 1)
    expected = np.maximum(x.numpy() @ theta.w.numpy() + theta.b.numpy(), 0)
    self.assertAllClose(layer.FProp(theta, x), expected)

  def testBatchSizeKnownAtRunTimeOnly(self):
    layer = _Layer()

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 3], tf.float64)])
    def _FProp(x):
      return layer(x)

    x = gradient_check.Draw([2, 4, 3], 1)
    self.assertAllClose(_FProp(x), layer(x))

  def testNoBias(self):
    layer = _Layer(use_bias=False)
    self.assertEqual(list(layer.VariableSpecs()), ['w'])
    x = gradient_check.Draw([4, 3], 1)
    self.assertAllClose(layer(x), x.numpy() @ layer.vars.w.numpy())

  def testOnlyTheKernelDecays(self):
    specs = _Layer().VariableSpecs()
    self.assertEqual(specs.w.collections, ('l2',))
    self.assertEqual(specs.b.collections, ())

  def testGradients(self):
    gradient_check.AssertGradients(
      self, _Layer(activation='tanh'), gradient_check.Draw([2, 4, 3], 1)
    )

  def testErrors(self):
    with self.assertRaisesRegex(
      ValueError, r'dense: inputs \(2, 4\) end in 4, but input_dim=3'
    ):
      _Layer()(gradient_check.Draw([2, 4], 1))
    with self.assertRaisesRegex(ValueError, "activation='relux'"):
      _Layer(activation='relux')


if __name__ == '__main__':
  tf.test.main()
