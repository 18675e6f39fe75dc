"""Tests of feed_forward."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context
from lingvo_gpipe.layers import feed_forward, gradient_check


def _Layer(**kwargs):
  p = feed_forward.FeedForward.Params().Set(
    name='ffn', dtype=tf.float64, dim=3, hidden_dim=5
  )
  layer = p.Set(**kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


class FeedForwardTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    shape=[(4, 3), (2, 4, 3), (1, 2, 2, 3)], use_bias=[False, True]
  )
  def testFProp(self, shape, use_bias):
    layer = _Layer(use_bias=use_bias)
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw(shape, 1)
    w = tf.nest.map_structure(np.asarray, theta)
    hidden = x.numpy() @ w.hidden.w
    if use_bias:
      hidden += w.hidden.b
    expected = np.maximum(hidden, 0.0) @ w.output.w
    if use_bias:
      expected += w.output.b
    self.assertAllClose(layer.FProp(theta, x), expected)

  def testActivation(self):
    layer = _Layer(activation='tanh', use_bias=False)
    x = gradient_check.Draw([4, 3], 1)
    w = layer.vars
    expected = np.tanh(x.numpy() @ w.hidden.w.numpy()) @ w.output.w.numpy()
    self.assertAllClose(layer(x), expected)

  def testSizesKnownAtRunTimeOnly(self):
    layer = _Layer()
    spec = tf.TensorSpec([None, None, 3], tf.float64)
    function = tf.function(layer, input_signature=[spec], autograph=False)
    x = gradient_check.Draw([2, 4, 3], 1)
    self.assertAllClose(function(x), layer(x))

  def testDropout(self):
    layer = _Layer(keep_prob=0.5)
    x = gradient_check.Draw([8, 3], 1)
    outputs = []
    for step in (1, 1, 2):
      with fprop_context.FPropContext(do_eval=False, global_step=step):
        outputs.append(layer(x))
    self.assertAllEqual(outputs[0], outputs[1])
    self.assertNotAllClose(outputs[0], outputs[2])
    self.assertNotAllClose(outputs[0], layer(x))

  def testOutputInitScale(self):
    usual, scaled = _Layer(), _Layer(output_init_scale=0.5)
    self.assertAllClose(scaled.vars.output.w, 0.5 * usual.vars.output.w)
    self.assertAllClose(scaled.vars.hidden.w, usual.vars.hidden.w)

  def testHalfPrecision(self):
    layer = _Layer(dtype=tf.float32, fprop_dtype=tf.bfloat16)
    x = tf.cast(gradient_check.Draw([4, 3], 1), tf.bfloat16)
    self.assertEqual(layer.VariableSpecs().hidden.w.dtype, tf.float32)
    self.assertEqual(layer(x).dtype, tf.bfloat16)

  def testGradients(self):
    layer = _Layer(activation='tanh', keep_prob=0.8)
    x = gradient_check.Draw([2, 4, 3], 1)
    gradient_check.AssertGradients(self, layer, x)

  @parameterized.parameters(
    ({'dim': 0}, 'ffn: dim=0 must be'),
    ({'hidden_dim': 0}, 'ffn: hidden_dim=0 must be'),
    ({'activation': 'relux'}, "ffn: activation='relux' is not known"),
    ({'keep_prob': 2.0}, 'keep_prob=2.0 must be'),
  )
  def testWrongParams(self, params, message):
    with self.assertRaisesRegex(ValueError, message):
      _Layer(**params)

  def testWrongWidth(self):
    with self.assertRaisesRegex(ValueError, 'ffn: .* end in 4, but dim=3'):
      _Layer()(gradient_check.Draw([2, 4], 1))


if __name__ == '__main__':
  tf.test.main()
