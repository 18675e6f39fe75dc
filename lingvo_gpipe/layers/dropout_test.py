"""Tests of dropout."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context
from lingvo_gpipe.layers import dropout, gradient_check


def _Layer(cls=dropout.Dropout, keep_prob=0.7, **kwargs):
  p = cls.Params().Set(name='dropout', keep_prob=keep_prob, **kwargs)
  layer = p.Instantiate()
  layer.InstantiateVariables()
  return layer


def _Train(layer, x, step=3, micro_batch=1):
  with fprop_context.FPropContext(
    do_eval=False, global_step=step, micro_batch=micro_batch
  ):
    return layer(x)


class DropoutTest(tf.test.TestCase, parameterized.TestCase):
  def testKeepsSomeAndScalesThem(self):
    outputs = _Train(_Layer(), tf.fill([100, 100], 2.0)).numpy()
    kept = outputs != 0
    self.assertAllClose(outputs[kept], np.full(kept.sum(), 2.0 / 0.7))
    # The standard deviation of the share is 0.0046.
    self.assertAllClose(kept.mean(), 0.7, atol=0.02)

  def testMaskIsAFunctionOfStepAndMicroBatch(self):
    layer, x = _Layer(), tf.ones([4, 50])
    first = _Train(layer, x)
    self.assertAllEqual(_Train(layer, x), first)
    in_graph = tf.function(_Train, autograph=False)
    self.assertAllEqual(in_graph(layer, x, tf.constant(3, tf.int64)), first)
    self.assertNotAllEqual(_Train(layer, x, step=4), first)
    self.assertNotAllEqual(_Train(layer, x, micro_batch=2), first)
    other = _Layer(random_seed=2)
    self.assertNotAllEqual(_Train(other, x), first)

  def testGradientHasTheMask(self):
    x = tf.ones([4, 50])
    with tf.GradientTape() as tape:
      tape.watch(x)
      outputs = _Train(_Layer(), x)
    self.assertAllEqual(tape.gradient(outputs, x), outputs)

  def testEvaluationKeepsAll(self):
    x = gradient_check.Draw([4, 5], 1)
    self.assertIs(_Layer()(x), x)

  def testKeepProbOneKeepsAll(self):
    x = gradient_check.Draw([4, 5], 1)
    self.assertIs(_Train(_Layer(keep_prob=1.0), x), x)

  def testNoiseShape(self):
    layer = _Layer(noise_shape=(None, 1, None))
    outputs = _Train(layer, tf.ones([8, 6, 20])).numpy()
    self.assertAllEqual(outputs, np.broadcast_to(outputs[:, :1], (8, 6, 20)))
    self.assertNotAllEqual(outputs[0], outputs[1])
    self.assertLen(np.unique(outputs[0, 0]), 2)

  def testHalfPrecisionKeepsTheProbability(self):
    layer = _Layer(keep_prob=0.999)
    outputs = _Train(layer, tf.ones([300, 1000], tf.bfloat16))
    dropped = np.mean(tf.cast(outputs, tf.float32).numpy() == 0)
    self.assertEqual(outputs.dtype, tf.bfloat16)
    self.assertAllClose(dropped, 0.001, atol=3e-4)

  def testErrors(self):
    for keep_prob in (0.0, 1.5):
      with self.assertRaisesRegex(ValueError, f'keep_prob={keep_prob} must be'):
        _Layer(keep_prob=keep_prob)
    with self.assertRaisesRegex(ValueError, 'differ in rank'):
      _Train(_Layer(noise_shape=(None, 1)), tf.ones([2, 3, 4]))


class DropPathTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(((1000, 3),), ((1000, 2, 2, 3),))
  def testDropsWholeExamples(self, shape):
    outputs = _Train(_Layer(dropout.DropPath), tf.ones(shape)).numpy()
    rows = outputs.reshape(1000, -1)
    self.assertAllEqual(rows, np.broadcast_to(rows[:, :1], rows.shape))
    kept = rows[:, 0] != 0
    self.assertAllClose(rows[kept], np.full(rows[kept].shape, 1.0 / 0.7))
    self.assertAllClose(kept.mean(), 0.7, atol=0.06)

  def testRamp(self):
    layer = _Layer(dropout.DropPath, ramp_steps=100)
    x = tf.ones([4000, 1])
    for step, keep_prob in ((0, 1.0), (50, 0.85), (100, 0.7), (900, 0.7)):
      outputs = _Train(layer, x, step=tf.constant(step, tf.int64)).numpy()
      kept = outputs != 0
      self.assertAllClose(kept.mean(), keep_prob, atol=0.03, msg=str(step))
      self.assertAllClose(outputs[kept], np.full(kept.sum(), 1 / keep_prob))

  def testEvaluationKeepsAll(self):
    x = gradient_check.Draw([4, 5], 1)
    self.assertIs(_Layer(dropout.DropPath)(x), x)


if __name__ == '__main__':
  tf.test.main()
