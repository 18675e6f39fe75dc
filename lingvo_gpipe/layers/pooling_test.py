"""Tests of pooling."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.layers import gradient_check, pooling


def _Layer(**kwargs):
  p = pooling.Pooling2D.Params().Set(name='pool', dtype=tf.float64, **kwargs)
  layer = p.Instantiate()
  layer.InstantiateVariables()
  return layer


def _Reference(x, reduce, window, stride, padding):
  """Pools [b, h, w, c]; padding is nan and reduce leaves it out."""
  if padding == 'SAME':
    total = [
      max((-(-n // stride) - 1) * stride + window - n, 0) for n in x.shape[1:3]
    ]
    pads = [(t // 2, t - t // 2) for t in total]
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.nan)
  sizes = [(n - window) // stride + 1 for n in x.shape[1:3]]
  y = np.zeros([x.shape[0], *sizes, x.shape[3]])
  for i in range(sizes[0]):
    for j in range(sizes[1]):
      top, left = i * stride, j * stride
      part = x[:, top : top + window, left : left + window]
      y[:, i, j] = reduce(part, axis=(1, 2))
  return y


class PoolingTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    pooling_type=['MAX', 'AVG'],
    window=[2, 3],
    stride=[1, 2],
    padding=['SAME', 'VALID'],
  )
  def testFProp(self, pooling_type, window, stride, padding):
    layer = _Layer(
      pooling_type=pooling_type,
      window_shape=(window, window),
      window_stride=(stride, stride),
      padding=padding,
    )
    x = gradient_check.Draw([2, 7, 6, 3], 1)
    reduce = np.nanmax if pooling_type == 'MAX' else np.nanmean
    self.assertAllClose(
      layer(x), _Reference(x.numpy(), reduce, window, stride, padding)
    )

  @parameterized.parameters('MAX', 'AVG')
  def testGradients(self, pooling_type):
    layer = _Layer(pooling_type=pooling_type, window_shape=(3, 3))
    x = gradient_check.Draw([2, 4, 5, 2], 1)
    gradient_check.AssertGradients(self, layer, x)

  def testHasNoWeights(self):
    self.assertEqual(_Layer().VariableSpecs(), nested_map.NestedMap())

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, "pooling_type='max' is neither"):
      _Layer(pooling_type='max')
    with self.assertRaisesRegex(ValueError, 'window_shape=.* positive'):
      _Layer(window_shape=(3,))
    with self.assertRaisesRegex(ValueError, "padding='' is neither"):
      _Layer(padding='')

  def testGlobalAverage(self):
    x = gradient_check.Draw([2, 3, 4, 5], 1)
    self.assertAllClose(
      pooling.GlobalAverage(x), x.numpy().reshape(2, 12, 5).mean(1)
    )


if __name__ == '__main__':
  tf.test.main()
