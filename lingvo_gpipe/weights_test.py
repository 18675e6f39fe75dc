"""Tests of weights."""

import math

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import weights

WeightInit = weights.WeightInit


def _Spec(init, shape=(64, 256), path='net/w', seed=1, dtype=tf.float32):
  return weights.VariableSpec(path, shape, dtype, init, True, (), seed)


class WeightInitTest(parameterized.TestCase, tf.test.TestCase):
  def testConstant(self):
    value = weights.InitialValue(_Spec(WeightInit.Constant(0.5), (2, 3)))
    self.assertAllEqual(value, np.full((2, 3), 0.5))

  @parameterized.parameters(
    (WeightInit.Gaussian(0.3), 0.3),
    (WeightInit.TruncatedGaussian(0.3), 0.3 * 0.8796),
    (WeightInit.Uniform(0.3), 0.3 / math.sqrt(3)),
    (WeightInit.VarianceScaling(2.0, 'fan_in'), math.sqrt(2 / 64)),
    (WeightInit.VarianceScaling(1.0, 'fan_out', 'normal'), math.sqrt(1 / 256)),
    (WeightInit.GlorotUniform(), math.sqrt(2 / (64 + 256))),
  )
  def testStandardDeviation(self, init, stddev):
    value = weights.InitialValue(_Spec(init)).numpy()
    self.assertAllClose(value.std(), stddev, rtol=0.03)
    self.assertAllClose(value.mean(), 0.0, atol=0.03 * stddev)

  def testFansOfAConvolutionCountItsReceptiveField(self):
    init = WeightInit.VarianceScaling(1.0, 'fan_out', 'normal')
    value = weights.InitialValue(_Spec(init, (3, 3, 32, 64))).numpy()
    self.assertAllClose(value.std(), math.sqrt(1 / (9 * 64)), rtol=0.03)

  def testDependsOnPathAndSeedOnly(self):
    init = WeightInit.Gaussian()
    value = weights.InitialValue(_Spec(init))
    self.assertAllEqual(value, weights.InitialValue(_Spec(init)))
    for other in (_Spec(init, path='net/v'), _Spec(init, seed=2)):
      self.assertNotAllClose(value, weights.InitialValue(other))

  def testWrongNames(self):
    with self.assertRaisesRegex(ValueError, "'fan' is not fan_in, fan_out"):
      WeightInit.VarianceScaling(mode='fan')
    with self.assertRaisesRegex(ValueError, "'cauchy' is not truncated"):
      WeightInit.VarianceScaling(distribution='cauchy')
    init = WeightInit.Gaussian().Set(method='gauss')
    with self.assertRaisesRegex(ValueError, "net/w: .* called 'gauss'"):
      weights.InitialValue(_Spec(init))


class VariableSpecTest(tf.test.TestCase):
  def testSizes(self):
    spec = _Spec(WeightInit.Constant(), (3, 5), dtype=tf.float64)
    self.assertEqual((spec.size, spec.num_bytes), (15, 120))
    self.assertEqual(_Spec(WeightInit.Constant(), ()).size, 1)

  def testCreate(self):
    spec = _Spec(WeightInit.Gaussian(), dtype=tf.float64)
    variable = spec.Create()
    self.assertEqual(variable.dtype, tf.float64)
    self.assertTrue(variable.trainable)
    self.assertAllEqual(variable, weights.InitialValue(spec))

  def testHashIsStableAcrossProcesses(self):
    self.assertEqual(weights.Hash64('a', 1), weights.Hash64('a', '1'))
    self.assertNotEqual(weights.Hash64('a', 1), weights.Hash64('a1'))
    self.assertLess(weights.Hash64('x'), 2**63)


if __name__ == '__main__':
  tf.test.main()
