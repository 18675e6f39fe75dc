"""Tests of gradient_check: it passes right gradients and fails wrong ones."""

import tensorflow as tf

from lingvo_gpipe import base_layer
from lingvo_gpipe.layers import gradient_check


class _Product(base_layer.BaseLayer):
  """w * x, with a gradient by w that is wrong by a factor."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('factor', 1.0, 'Of the gradient.')
    return p

  def __init__(self, params):
    super().__init__(params)
    self.CreateVariable('w', base_layer.WeightParams((3,)))

  def FProp(self, theta, inputs):
    factor = self.params.factor

    @tf.custom_gradient
    def _Multiply(w, x):
      return w * x, lambda dy: (factor * dy * x, dy * w)

    return _Multiply(theta.w, inputs)


class GradientCheckTest(tf.test.TestCase):
  def _Check(self, factor):
    p = _Product.Params().Set(name='x', dtype=tf.float64, factor=factor)
    layer = p.Instantiate()
    layer.InstantiateVariables()
    gradient_check.AssertGradients(self, layer, gradient_check.Draw([3], 1))

  def testRight(self):
    self._Check(1.0)

  def testWrong(self):
    with self.assertRaises(AssertionError):
      self._Check(1.001)


if __name__ == '__main__':
  tf.test.main()
