"""Tests of conv, against convolutions written out in NumPy."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.layers import conv, gradient_check


def _Layer(cls, **kwargs):
  p = cls.Params().Set(name='conv', dtype=tf.float64, **kwargs)
  layer = p.Instantiate()
  layer.InstantiateVariables()
  return layer


def _Reference(x, w, stride, padding):
  """[b, h, w, c], [kh, kw, c, d] -> [b, h', w', d]."""
  kernel = w.shape[:2]
  if padding == 'SAME':
    total = [
      max((-(-n // s) - 1) * s + k - n, 0)
      for n, s, k in zip(x.shape[1:3], stride, kernel, strict=True)
    ]
    pads = [(t // 2, t - t // 2) for t in total]
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
  sizes = [
    (n - k) // s + 1
    for n, s, k in zip(x.shape[1:3], stride, kernel, strict=True)
  ]
  y = np.zeros([x.shape[0], *sizes, w.shape[3]])
  for i in range(sizes[0]):
    for j in range(sizes[1]):
      top, left = i * stride[0], j * stride[1]
      window = x[:, top : top + kernel[0], left : left + kernel[1]]
      y[:, i, j] = np.tensordot(window, w, 3)
  return y


class Conv2DTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    size=[(1, 1), (3, 3), (1, 7), (7, 1), (3, 2)],
    stride=[(1, 1), (2, 2), (1, 2), (2, 1)],
    padding=['SAME', 'VALID'],
  )
  def testFProp(self, size, stride, padding):
    layer = _Layer(
      conv.Conv2D,
      filter_shape=(*size, 3, 4),
      filter_stride=stride,
      padding=padding,
      activation='relu',
    )
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw([2, 8, 7, 3], 1)
    expected = _Reference(x.numpy(), theta.w.numpy(), stride, padding)
    self.assertAllClose(
      layer.FProp(theta, x), np.maximum(expected + theta.b.numpy(), 0)
    )

  def testNoBias(self):
    layer = _Layer(conv.Conv2D, filter_shape=(3, 3, 2, 5), use_bias=False)
    self.assertEqual(list(layer.VariableSpecs()), ['w'])
    self.assertEqual(layer.VariableSpecs().w.collections, ('l2',))
    x = gradient_check.Draw([1, 4, 4, 2], 1)
    expected = _Reference(x.numpy(), layer.vars.w.numpy(), (1, 1), 'SAME')
    self.assertAllClose(layer(x), expected)

  def testGradients(self):
    layer = _Layer(conv.Conv2D, filter_shape=(1, 3, 2, 3), filter_stride=(1, 2))
    x = gradient_check.Draw([2, 4, 5, 2], 1)
    gradient_check.AssertGradients(self, layer, x)

  def testErrors(self):
    layer = _Layer(conv.Conv2D, filter_shape=(1, 1, 3, 3))
    with self.assertRaisesRegex(
      ValueError, r'conv: inputs have shape \(2, 4, 4, 2\); it takes \[batch'
    ):
      layer(gradient_check.Draw([2, 4, 4, 2], 1))
    with self.assertRaisesRegex(ValueError, "padding='same' is neither"):
      _Layer(conv.Conv2D, filter_shape=(1, 1, 3, 3), padding='same')
    with self.assertRaisesRegex(ValueError, 'filter_stride=.* positive'):
      _Layer(conv.Conv2D, filter_shape=(1, 1, 3, 3), filter_stride=(0, 1))
    with self.assertRaisesRegex(ValueError, 'must be four integers'):
      _Layer(conv.Conv2D, filter_shape=(1, 3, 3))


class SeparableConv2DTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    size=[(3, 3), (5, 5), (3, 1)], stride=[1, 2], padding=['SAME', 'VALID']
  )
  def testFProp(self, size, stride, padding):
    layer = _Layer(
      conv.SeparableConv2D,
      filter_shape=(*size, 3, 4),
      filter_stride=(stride, stride),
      padding=padding,
    )
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw([2, 8, 7, 3], 1)
    # A convolution whose kernel is 0 across channels, then one across them.
    within = theta.depthwise.numpy() * np.eye(3)[np.newaxis, np.newaxis]
    middle = _Reference(x.numpy(), within, (stride, stride), padding)
    expected = middle @ theta.pointwise.numpy()[0, 0] + theta.b.numpy()
    self.assertAllClose(layer.FProp(theta, x), expected)

  def testGradients(self):
    layer = _Layer(
      conv.SeparableConv2D, filter_shape=(3, 3, 2, 4), filter_stride=(2, 2)
    )
    x = gradient_check.Draw([2, 5, 5, 2], 1)
    gradient_check.AssertGradients(self, layer, x)

  def testBothKernelsDecay(self):
    layer = _Layer(
      conv.SeparableConv2D, filter_shape=(3, 3, 2, 4), use_bias=False
    )
    collections = {k: s.collections for k, s in layer.VariableSpecs().items()}
    self.assertEqual(collections, {'depthwise': ('l2',), 'pointwise': ('l2',)})

  def testUnequalStride(self):
    with self.assertRaisesRegex(ValueError, 'the same in both directions'):
      _Layer(
        conv.SeparableConv2D, filter_shape=(3, 3, 2, 4), filter_stride=(1, 2)
      )


if __name__ == '__main__':
  tf.test.main()
