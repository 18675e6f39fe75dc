"""Tests of scaled_init."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import weights
from lingvo_gpipe.layers import scaled_init

WeightInit = weights.WeightInit


def _Value(init):
  spec = weights.VariableSpec('w', (4, 3), tf.float64, init, True, (), 1)
  return weights.InitialValue(spec)


class ScaledInitTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    (WeightInit.Constant(2.0),),
    (WeightInit.Gaussian(0.3),),
    (WeightInit.TruncatedGaussian(0.3),),
    (WeightInit.Uniform(0.3),),
    (WeightInit.GlorotUniform(),),
    (WeightInit.VarianceScaling(2.0, 'fan_in', 'truncated_normal'),),
    (WeightInit.VarianceScaling(2.0, 'fan_out', 'normal'),),
  )
  def testValuesAreScaled(self, init):
    scaled = scaled_init.ScaledInit(init, 0.25)
    self.assertAllClose(_Value(scaled), 0.25 * _Value(init))


if __name__ == '__main__':
  tf.test.main()
