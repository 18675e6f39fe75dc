"""Tests of conv_norm."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.layers import conv, conv_norm, gradient_check, norm


def _Layer(**kwargs):
  p = conv_norm.ConvNorm.Params().Set(
    name='block',
    dtype=tf.float64,
    conv=conv.Conv2D.Params().Set(
      filter_shape=(1, 1, 3, 4), use_bias=False, filter_stride=(2, 2)
    ),
    norm=norm.BatchNorm.Params().Set(epsilon=0.25),
    **kwargs,
  )
  layer = p.Instantiate()
  layer.InstantiateVariables()
  return layer


class ConvNormTest(tf.test.TestCase):
  def testOrder(self):
    layer = _Layer(pre_activation='relu', activation='tanh')
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw([2, 4, 4, 3], 1)
    y = np.maximum(x.numpy()[:, ::2, ::2], 0) @ theta.conv.w.numpy()[0, 0]
    y = y / np.sqrt(1.25) * theta.norm.gamma.numpy() + theta.norm.beta.numpy()
    self.assertAllClose(layer.FProp(theta, x), np.tanh(y))

  def testDefaultHasNoBiasAndNoActivation(self):
    layer = _Layer()
    self.assertEqual(list(layer.VariableSpecs().conv), ['w'])
    self.assertEqual(layer.VariableSpecs().norm.gamma.shape, (4,))
    x = gradient_check.Draw([2, 4, 4, 3], 1)
    expected = x.numpy()[:, ::2, ::2] @ layer.vars.conv.w.numpy()[0, 0]
    self.assertAllClose(layer(x), expected / np.sqrt(1.25))

  def testGradients(self):
    layer = _Layer(pre_activation='relu')
    x = gradient_check.Draw([2, 4, 4, 3], 1)
    gradient_check.AssertGradients(self, layer, x)

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, "block: activation='Relu'"):
      _Layer(pre_activation='Relu')


if __name__ == '__main__':
  tf.test.main()
