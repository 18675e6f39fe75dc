"""Tests of softmax_loss."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.layers import gradient_check
from tasks.image import softmax_loss


class SoftmaxLossTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(0.0, 0.1, 1.0)
  def testCrossEntropy(self, label_smoothing):
    logits = gradient_check.Draw([6, 4], 1)
    labels = np.array([0, 1, 2, 3, 3, 1])
    array = logits.numpy()
    log_probs = array - np.log(np.exp(array).sum(-1, keepdims=True))
    targets = np.eye(4)[labels] * (1 - label_smoothing) + label_smoothing / 4
    self.assertAllClose(
      softmax_loss.CrossEntropy(logits, labels, label_smoothing),
      -(targets * log_probs).sum(-1),
    )

  @parameterized.parameters(0.0, 0.1)
  def testHalfPrecisionIsComputedInFloat32(self, label_smoothing):
    logits = tf.cast(10.0 * gradient_check.Draw([6, 4], 1), tf.bfloat16)
    loss = softmax_loss.CrossEntropy(
      logits, [0, 1, 2, 3, 3, 1], label_smoothing
    )
    self.assertEqual(loss.dtype, tf.float32)
    exact = softmax_loss.CrossEntropy(
      tf.cast(logits, tf.float64), [0, 1, 2, 3, 3, 1], label_smoothing
    )
    self.assertAllClose(loss, tf.cast(exact, tf.float32), rtol=1e-5)

  def testInTopK(self):
    logits = gradient_check.Draw([50, 8], 1)
    labels = tf.range(50) % 8
    order = np.argsort(-logits.numpy(), axis=-1)
    for k in (1, 3, 8):
      expected = (order[:, :k] == labels.numpy()[:, np.newaxis]).any(-1)
      self.assertAllEqual(
        softmax_loss.InTopK(logits, labels, k), expected.astype(np.float32)
      )

  def testEqualLogitsCountOnce(self):
    logits = tf.zeros([10, 10])
    labels = tf.range(10)
    self.assertEqual(
      float(tf.reduce_sum(softmax_loss.InTopK(logits, labels, 1))), 1.0
    )
    self.assertEqual(
      float(tf.reduce_sum(softmax_loss.InTopK(logits, labels, 5))), 5.0
    )

  def testLogitsThatAreNotFiniteAreWrong(self):
    nan = float('nan')
    logits = tf.constant([[nan, nan], [1.0, nan], [float('inf'), 0.0]])
    self.assertAllEqual(softmax_loss.InTopK(logits, [0, 0, 0], 1), [0, 0, 0])


if __name__ == '__main__':
  tf.test.main()
