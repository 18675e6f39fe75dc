"""Tests of norm."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, fprop_context, nested_map
from lingvo_gpipe.layers import gradient_check, norm


def _Layer(cls=norm.BatchNorm, **kwargs):
  p = cls.Params().Set(name='norm', dtype=tf.float64, dim=3).Set(**kwargs)
  layer = p.Instantiate()
  layer.InstantiateVariables()
  return layer


def _Train(layer, x, theta=None):
  """(outputs, statistics) of a micro-batch."""
  with fprop_context.FPropContext(do_eval=False) as context:
    outputs = layer.FProp(theta or layer.theta, x)
  return outputs, context.statistics[layer.path]


def _Sum(statistics):
  return tf.nest.map_structure(lambda *parts: tf.add_n(parts), *statistics)


class BatchNormTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    shape=[(6, 3), (4, 2, 3), (4, 2, 5, 3)], dtype=[tf.float32, tf.float64]
  )
  def testTraining(self, shape, dtype):
    layer = _Layer(dtype=dtype, epsilon=0.01)
    theta = gradient_check.RandomTheta(_Layer())
    theta = tf.nest.map_structure(lambda w: tf.cast(w, dtype), theta)
    x = 2.0 + 3.0 * gradient_check.Draw(shape, 1)
    outputs, unused_statistics = _Train(layer, tf.cast(x, dtype), theta)
    rows = x.numpy().reshape(-1, 3)
    expected = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 0.01)
    expected = expected * theta.gamma.numpy() + theta.beta.numpy()
    self.assertEqual(outputs.dtype, dtype)
    self.assertAllClose(
      outputs, expected.reshape(shape), 1e-5 if dtype == tf.float32 else 1e-12
    )

  @parameterized.parameters(tf.float32, tf.float64)
  def testMovingMomentsAreThoseOfTheMiniBatch(self, dtype):
    # Micro-batches whose means differ: no average of their variances is the
    # variance of the mini-batch.
    layer = _Layer(dtype=dtype, decay=0.75)
    x = gradient_check.Draw([12, 4, 4, 3], 1).numpy()
    x += np.arange(12).reshape(12, 1, 1, 1)
    theta = layer.theta
    parts = [
      _Train(layer, tf.constant(part, dtype), theta)[1]
      for part in np.split(x, 4)
    ]
    layer.ApplyStatistics(_Sum(parts))
    rows = x.reshape(-1, 3)
    self.assertAllClose(layer.vars.moving_mean, 0.25 * rows.mean(0))
    self.assertAllClose(
      layer.vars.moving_variance, 0.75 + 0.25 * rows.var(0), rtol=1e-5
    )

  def testNumberOfMicroBatchesDoesNotMatter(self):
    x = gradient_check.Draw([12, 2, 2, 3], 1)
    moments = []
    for num_micro_batches in (1, 2, 3, 12):
      layer = _Layer()
      parts = [_Train(layer, p)[1] for p in tf.split(x, num_micro_batches)]
      layer.ApplyStatistics(_Sum(parts))
      moments.append([layer.vars.moving_mean, layer.vars.moving_variance])
    for other in moments[1:]:
      self.assertAllClose(other, moments[0], rtol=1e-12)

  def testMeanFarFromZero(self):
    # In float32, sums of squares around zero would lose all of the variance.
    layer = _Layer(dtype=tf.float32, decay=0.5)
    x = (3000.0 + gradient_check.Draw([64, 4, 4, 3], 1)).numpy()
    for _ in range(30):
      theta = layer.theta
      parts = [
        _Train(layer, tf.constant(part, tf.float32), theta)[1]
        for part in np.split(x, 4)
      ]
      layer.ApplyStatistics(_Sum(parts))
    rows = x.reshape(-1, 3)
    self.assertAllClose(layer.vars.moving_mean, rows.mean(0), rtol=1e-6)
    self.assertAllClose(layer.vars.moving_variance, rows.var(0), rtol=0.01)

  def testMicroBatchOfOneValue(self):
    layer = _Layer(dtype=tf.float32, decay=0.0)
    outputs, statistics = _Train(layer, tf.constant([[5.0, 6.0, 7.0]]))
    self.assertAllClose(outputs, [[0.0, 0.0, 0.0]])
    layer.ApplyStatistics(statistics)
    self.assertAllClose(layer.vars.moving_mean, [5.0, 6.0, 7.0])
    self.assertAllClose(layer.vars.moving_variance, [0.0, 0.0, 0.0])

  @parameterized.product(
    shape=[(4, 3), (4, 2, 2, 3)], dtype=[tf.float32, tf.float64]
  )
  def testEvaluation(self, shape, dtype):
    layer = _Layer(dtype=dtype, epsilon=0.01)
    theta = gradient_check.RandomTheta(_Layer())
    theta.moving_mean = tf.constant([1.0, 2.0, 3.0], tf.float64)
    theta.moving_variance = tf.constant([4.0, 5.0, 6.0], tf.float64)
    x = gradient_check.Draw(shape, 1)
    scale = theta.gamma.numpy() / np.sqrt(theta.moving_variance.numpy() + 0.01)
    expected = (x.numpy() - [1.0, 2.0, 3.0]) * scale + theta.beta.numpy()
    theta = tf.nest.map_structure(lambda w: tf.cast(w, dtype), theta)
    with fprop_context.FPropContext(do_eval=True) as context:
      outputs = layer.FProp(theta, tf.cast(x, dtype))
    self.assertEqual(context.statistics, {})
    self.assertEqual(outputs.dtype, dtype)
    self.assertAllClose(outputs, expected, 1e-5)

  @parameterized.product(
    dtype=[tf.bfloat16, tf.float16], shape=[(8, 4, 4, 3), (128, 3)]
  )
  def testHalfPrecision(self, dtype, shape):
    layer = _Layer(dtype=dtype)
    for spec in layer.VariableSpecs().values():
      self.assertEqual(spec.dtype, tf.float32, spec.path)
    x = tf.cast(4.0 + gradient_check.Draw(shape, 1), dtype)
    outputs, statistics = _Train(layer, x)
    self.assertEqual(outputs.dtype, dtype)
    for value in statistics.values():
      self.assertEqual(value.dtype, tf.float32)
    rows = tf.cast(x, tf.float64).numpy().reshape(-1, 3)
    count, total, squares = statistics.sums.numpy()
    self.assertAllEqual(count, [128.0] * 3)
    self.assertAllClose(total, 128 * rows.mean(0), 1e-5)
    self.assertAllClose(squares, (rows**2).sum(0), 1e-5)
    expected = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-3)
    self.assertAllClose(
      tf.cast(outputs, tf.float64),
      expected.reshape(x.shape),
      rtol=0.01,
      atol=0.03,
    )
    self.assertEqual(layer(x).dtype, dtype)

  @parameterized.parameters(
    (tf.float32, tf.float64), (tf.float64, tf.float32), (tf.float32, tf.half)
  )
  def testComputationInAnotherDtype(self, dtype, fprop_dtype):
    layer = _Layer(dtype=dtype, fprop_dtype=fprop_dtype)
    x = tf.cast(gradient_check.Draw([4, 1, 1, 3], 1), fprop_dtype)
    outputs, statistics = _Train(layer, x)
    self.assertEqual(outputs.dtype, fprop_dtype)
    layer.ApplyStatistics(statistics)
    self.assertEqual(layer.vars.moving_mean.dtype, dtype)
    self.assertEqual(layer(x).dtype, fprop_dtype)

  def testBatchSizeKnownAtRunTimeOnly(self):
    layer = _Layer(dtype=tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3])])
    def _Step(x):
      return _Train(layer, x)

    x = tf.cast(gradient_check.Draw([4, 5, 3], 1), tf.float32)
    for value, expected in zip(
      tf.nest.flatten(_Step(x)), tf.nest.flatten(_Train(layer, x)), strict=True
    ):
      self.assertAllClose(value, expected)

  @parameterized.parameters(False, True)
  def testGradients(self, do_eval):
    x = gradient_check.Draw([4, 2, 2, 3], 1)
    gradient_check.AssertGradients(self, _Layer(), x, do_eval=do_eval)

  def testFusedGradientsEqualTheComposedOnes(self):
    gradients = []
    for dtype in (tf.float32, tf.float64):
      layer = _Layer(dtype=dtype)
      x = tf.cast(gradient_check.Draw([4, 2, 2, 3], 1), dtype)
      weights = [layer.theta.gamma, layer.theta.beta]
      with tf.GradientTape() as tape:
        tape.watch([x, *weights])
        theta = layer.theta
        theta.gamma, theta.beta = weights
        outputs, unused_statistics = _Train(layer, x, theta)
        objective = tf.reduce_sum(tf.sin(outputs))
      gradients.append(tape.gradient(objective, [x, *weights]))
    for fused, composed in zip(*gradients, strict=True):
      self.assertAllClose(tf.cast(fused, tf.float64), composed, 1e-4, 1e-5)

  def testWhatIsTrained(self):
    trainable = {
      name: spec.trainable for name, spec in _Layer().VariableSpecs().items()
    }
    self.assertEqual(
      trainable,
      {
        'gamma': True,
        'beta': True,
        'moving_mean': False,
        'moving_variance': False,
      },
    )

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, 'end in 4, but dim=3'):
      _Layer()(gradient_check.Draw([2, 4], 1))
    with self.assertRaisesRegex(ValueError, r'norm: decay=1.0 must be in'):
      _Layer(decay=1.0)


class LayerNormTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    shape=[(3,), (5, 3), (2, 4, 3), (2, 1, 2, 3)], use_bias=[False, True]
  )
  def testFProp(self, shape, use_bias):
    layer = _Layer(norm.LayerNorm, use_bias=use_bias)
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw(shape, 1)
    array = x.numpy()
    mean, variance = array.mean(-1, keepdims=True), array.var(-1, keepdims=True)
    expected = (array - mean) / np.sqrt(variance + 1e-6) * theta.gamma.numpy()
    if use_bias:
      expected += theta.beta.numpy()
    self.assertAllClose(layer.FProp(theta, x), expected)

  def testNoBias(self):
    layer = _Layer(norm.LayerNorm, use_bias=False)
    self.assertEqual(list(layer.VariableSpecs()), ['gamma'])

  def testHalfPrecision(self):
    layer = _Layer(norm.LayerNorm, dtype=tf.bfloat16)
    self.assertIsInstance(layer, base_layer.BaseLayer)
    self.assertEqual(layer.VariableSpecs().gamma.dtype, tf.float32)
    x = tf.constant([[1000.0, 1008.0, 1016.0]], tf.bfloat16)
    outputs = layer(x)
    self.assertEqual(outputs.dtype, tf.bfloat16)
    self.assertAllClose(
      tf.cast(outputs, tf.float32), [[-1.22474, 0.0, 1.22474]], 0.01
    )

  def testHalfPrecisionGradients(self):
    # Those of the weights are sums of many and stay in float32.
    layer = _Layer(norm.LayerNorm, dtype=tf.float32, fprop_dtype=tf.bfloat16)
    x = tf.cast(gradient_check.Draw([1000, 3], 1), tf.bfloat16)
    theta = layer.theta
    with tf.GradientTape() as tape:
      tape.watch([x, theta])
      objective = tf.reduce_sum(tf.cast(layer.FProp(theta, x), tf.float32))
    dx, dtheta = tape.gradient(objective, [x, theta])
    self.assertEqual(dx.dtype, tf.bfloat16)
    self.assertEqual(dtheta.beta.dtype, tf.float32)
    self.assertAllEqual(dtheta.beta, [1000.0] * 3)

  @parameterized.product(
    shape=[(3,), (5, 3), (2, 4, 3), (2, 1, 2, 3)], use_bias=[False, True]
  )
  def testGradients(self, shape, use_bias):
    x = gradient_check.Draw(shape, 1)
    layer = _Layer(norm.LayerNorm, use_bias=use_bias, epsilon=0.01)
    gradient_check.AssertGradients(self, layer, x)

  def testGradientsInAGraphOfItsOwn(self):
    # As the segments of a pipeline differentiate.
    layer = _Layer(norm.LayerNorm)
    theta = gradient_check.RandomTheta(layer)
    x, dy = (gradient_check.Draw([2, 4, 3], i) for i in (1, 2))

    def _Differentiate(x, gamma, beta, dy):
      outputs = layer.FProp(nested_map.NestedMap(gamma=gamma, beta=beta), x)
      return tf.gradients(outputs, [x, gamma, beta], dy)

    arguments = [x, theta.gamma, theta.beta, dy]
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arguments]
    wrapped = tf.compat.v1.wrap_function(_Differentiate, specs)
    with tf.GradientTape() as tape:
      tape.watch([x, theta])
      outputs = layer.FProp(theta, x)
    dx, dtheta = tape.gradient(outputs, [x, theta], dy)
    for value, expected in zip(
      wrapped(*arguments), [dx, dtheta.gamma, dtheta.beta], strict=True
    ):
      self.assertAllClose(value, expected, 1e-12, 1e-12)

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, 'norm: .* end in 4, but dim=3'):
      _Layer(norm.LayerNorm)(gradient_check.Draw([2, 4], 1))


if __name__ == '__main__':
  tf.test.main()
