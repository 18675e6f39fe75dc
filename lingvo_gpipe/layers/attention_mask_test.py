"""Tests of attention_mask."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.layers import attention_mask


class AttentionMaskTest(tf.test.TestCase):
  def testAllConditionsHold(self):
    paddings = np.array([[0.0, 0, 0, 1], [0, 1, 0, 0]])
    ids = np.array([[1, 1, 2, 2], [1, 1, 1, 2]])
    seen = attention_mask.Seen(
      4,
      4,
      causal=True,
      paddings=tf.constant(paddings),
      segment_ids=tf.constant(ids),
      source_segment_ids=tf.constant(ids),
    )
    expected = [
      [
        [
          [
            j <= i and not paddings[b, j] and ids[b, i] == ids[b, j]
            for j in range(4)
          ]
          for i in range(4)
        ]
      ]
      for b in range(2)
    ]
    self.assertAllEqual(seen, expected)

  def testNothingToLeaveOut(self):
    self.assertIsNone(attention_mask.Seen(2, 3))
    scores = tf.constant([[1.0, 2.0]])
    self.assertIs(attention_mask.Apply(scores, None), scores)

  def testSoftmaxIsOverWhatIsSeen(self):
    scores = tf.constant([[1.0, 50.0, 2.0]])
    seen = tf.constant([[True, False, True]])
    probabilities = tf.nn.softmax(attention_mask.Apply(scores, seen))
    e = np.exp([1.0, 2.0])
    self.assertAllClose(probabilities, [[e[0] / e.sum(), 0.0, e[1] / e.sum()]])
    nothing = tf.nn.softmax(attention_mask.Apply(scores, tf.zeros_like(seen)))
    self.assertAllEqual(tf.math.is_finite(nothing), [[True] * 3])


if __name__ == '__main__':
  tf.test.main()
