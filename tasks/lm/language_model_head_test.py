"""Tests of language_model_head."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.layers import softmax
from tasks.lm import language_model_head

NestedMap = nested_map.NestedMap
_DIM, _VOCABULARY = 6, 9


def _Head(**kwargs):
  head = (
    language_model_head.LanguageModelHead.Params()
    .Set(
      name='head',
      dtype=tf.float64,
      softmax=softmax.SoftmaxLoss.Params().Set(
        dim=_DIM, vocab_size=_VOCABULARY
      ),
      **kwargs,
    )
    .Instantiate()
  )
  head.InstantiateVariables()
  return head


def _Batch():
  rng = np.random.RandomState(0)
  return rng.randn(3, 4, _DIM), NestedMap(
    labels=tf.constant(rng.randint(_VOCABULARY, size=[3, 4]), tf.int32),
    paddings=tf.constant([[0, 0, 1, 1], [0] * 4, [0] * 4], tf.float32),
    weights=tf.constant([1, 0, 1], tf.float32),
  )


class LanguageModelHeadTest(tf.test.TestCase):
  def testFollowsTheDefinition(self):
    x, batch = _Batch()
    for use_norm in (True, False):
      head = _Head(use_norm=use_norm)
      outputs = head(tf.constant(x), batch)
      normed = x
      if use_norm:
        variance = x.var(-1, keepdims=True) + 1e-6
        normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(variance)
      logits = normed @ head.softmax.vars.w.numpy()
      chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
      labels = batch.labels.numpy()
      of_labels = np.take_along_axis(chances, labels[..., None], -1)[..., 0]
      counted = np.array([[1, 1, 0, 0], [0] * 4, [1] * 4])
      bits = -(np.log2(of_labels) * counted).sum()
      self.assertAllClose(outputs.bits_per_token.total, bits, rtol=1e-12)
      self.assertAllClose(outputs.loss.total, bits * np.log(2), rtol=1e-12)
      right = (logits.argmax(-1) == labels) * counted
      self.assertAllClose(outputs.accuracy.total, right.sum())
      for metric in outputs.values():
        self.assertAllClose(metric.weight, 6.0)

  def testWithoutNormHasNoWeightsForIt(self):
    def _Count(head):
      return sum(s.size for s in tf.nest.flatten(head.VariableSpecs()))

    plain = (_DIM + 1) * _VOCABULARY
    self.assertEqual(_Count(_Head(use_norm=False)), plain)
    self.assertEqual(_Count(_Head()), plain + 2 * _DIM)


if __name__ == '__main__':
  tf.test.main()
