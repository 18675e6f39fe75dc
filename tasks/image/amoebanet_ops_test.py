"""Tests of amoebanet_ops."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer
from lingvo_gpipe.layers import gradient_check, norm
from tasks.image import amoebanet_ops, genotypes

_INIT = base_layer.WeightInit.VarianceScaling(2.0, 'fan_out')


def _Params(operation, input_dim, output_dim, stride):
  return amoebanet_ops.Operation(
    operation,
    input_dim,
    output_dim,
    stride,
    norm_params=norm.BatchNorm.Params().Set(decay=0.75),
    init=_INIT,
  )


def _Layer(params, dtype=tf.float64):
  layer = params.Set(dtype=dtype).Instantiate(name=params.name or 'op')
  layer.InstantiateVariables()
  return layer


def _NumTrainable(layer):
  specs = tf.nest.flatten(layer.VariableSpecs())
  return sum(spec.size for spec in specs if spec.trainable)


class OperationTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    operation=genotypes.OPERATIONS, stride=[1, 2], input_dim=[8, 6]
  )
  def testShape(self, operation, stride, input_dim):
    params = _Params(operation, input_dim, 8, stride)
    if params is None:
      self.assertEqual((operation, stride, input_dim), ('none', 1, 8))
      return
    x = gradient_check.Draw([2, 7, 6, input_dim], 1)
    size = [7, 6] if stride == 1 else [4, 3]
    self.assertEqual(_Layer(params)(x).shape, [2, *size, 8])

  @parameterized.product(operation=genotypes.OPERATIONS, stride=[1, 2])
  def testGradients(self, operation, stride):
    layer = _Layer(_Params(operation, 3, 4, stride))
    x = gradient_check.Draw([3, 4, 4, 3], 1)
    gradient_check.AssertGradients(self, layer, x)

  @parameterized.parameters(
    # C channels in, F = 8 out, 2 for batch norm's scale and offset.
    ('none', 8 * 8 + 2 * 8),
    ('conv_1x1', 8 * 8 + 2 * 8),
    # F/4 = 2 channels in between.
    ('conv_3x3', 8 * 2 + 9 * 2 * 2 + 2 * 8 + 2 * (2 + 2 + 8)),
    ('conv_1x7_7x1', 8 * 2 + 2 * 7 * 2 * 2 + 2 * 8 + 2 * (2 + 2 + 2 + 8)),
    ('separable_3x3_2', 2 * (9 * 8 + 8 * 8 + 2 * 8)),
    ('dilated_2_separable_5x5_2', 2 * (25 * 8 + 8 * 8 + 2 * 8)),
    ('max_pool_2x2', 0),
    ('max_pool_3x3', 0),
    ('avg_pool_3x3', 0),
  )
  def testParameters(self, operation, expected):
    params = _Params(operation, 8, 8, 2)
    self.assertEqual(_NumTrainable(_Layer(params)), expected)

  def testPoolProjectsOtherChannels(self):
    layer = _Layer(_Params('max_pool_2x2', 3, 8, 2))
    self.assertEqual(_NumTrainable(layer), 3 * 8 + 2 * 8)

  def testSettingsReachTheLayers(self):
    layer = _Layer(_Params('conv_1x7_7x1', 8, 8, 1))
    norms = [x for x in layer.Descendants() if isinstance(x, norm.BatchNorm)]
    self.assertLen(norms, 4)
    for child in norms:
      self.assertEqual(child.params.decay, 0.75)
    kernels = [
      spec
      for spec in tf.nest.flatten(layer.VariableSpecs())
      if spec.path.endswith('/w')
    ]
    self.assertLen(kernels, 4)
    for spec in kernels:
      self.assertEqual(spec.init, _INIT)
      self.assertEqual(spec.collections, ('l2',))

  def testStrideOfFactorizedKernels(self):
    layer = _Layer(_Params('conv_1x7_7x1', 8, 8, 2))
    strides = [x.params.conv.filter_stride for x in layer.layers]
    self.assertEqual(strides, [(1, 1), (1, 2), (2, 1), (1, 1)])
    shapes = [x.params.conv.filter_shape for x in layer.layers]
    self.assertEqual(
      shapes, [(1, 1, 8, 2), (1, 7, 2, 2), (7, 1, 2, 2), (1, 1, 2, 8)]
    )

  def testUnknownOperation(self):
    with self.assertRaisesRegex(ValueError, "'conv_9x9' is none of none, "):
      _Params('conv_9x9', 8, 8, 1)


class FactorizedReductionTest(tf.test.TestCase, parameterized.TestCase):
  def _Layer(self):
    return _Layer(
      amoebanet_ops.FactorizedReduction.Params().Set(input_dim=3, output_dim=5)
    )

  @parameterized.parameters(6, 7)
  def testFProp(self, size):
    layer = self._Layer()
    theta = layer.theta
    x = gradient_check.Draw([2, size, size, 3], 1)
    array = np.maximum(x.numpy(), 0)
    even = array[:, ::2, ::2] @ theta.even.w.numpy()[0, 0]
    odd = np.zeros([*even.shape[:3], 3])
    pixels = array[:, 1::2, 1::2] @ theta.odd.w.numpy()[0, 0]
    odd[:, : size // 2, : size // 2] = pixels
    expected = np.concatenate([even, odd], axis=-1) / np.sqrt(1 + 1e-3)
    self.assertEqual(even.shape[-1], 2)
    self.assertAllClose(layer(x), expected)

  def testGradients(self):
    x = gradient_check.Draw([2, 5, 4, 3], 1)
    gradient_check.AssertGradients(self, self._Layer(), x)


if __name__ == '__main__':
  tf.test.main()
