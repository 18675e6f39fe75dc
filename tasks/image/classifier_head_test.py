"""Tests of classifier_head."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, metrics, nested_map
from lingvo_gpipe.layers import gradient_check
from tasks.image import classifier_head, softmax_loss


def _Layer(num_classes=7, **kwargs):
  layer = (
    classifier_head.ClassifierHead.Params()
    .Set(
      name='head',
      dtype=tf.float64,
      input_dim=3,
      num_classes=num_classes,
      **kwargs,
    )
    .Instantiate()
  )
  layer.InstantiateVariables()
  return layer


def _Batch():
  return nested_map.NestedMap(
    labels=tf.constant([0, 1, 2, 3]),
    weights=tf.constant([1.0, 1.0, 0.5, 0.0], tf.float64),
  )


class ClassifierHeadTest(tf.test.TestCase, parameterized.TestCase):
  def testEvaluation(self):
    layer = _Layer(keep_prob=0.5, label_smoothing=0.1)
    theta = gradient_check.RandomTheta(layer)
    x = gradient_check.Draw([4, 2, 3, 3], 1)
    outputs = layer.FProp(theta, x, _Batch())
    features = np.maximum(x.numpy(), 0).mean((1, 2))
    logits = features @ theta.dense.w.numpy() + theta.dense.b.numpy()
    self.assertAllClose(outputs.logits, logits)
    loss = softmax_loss.CrossEntropy(tf.constant(logits), _Batch().labels, 0.1)
    weights = _Batch().weights.numpy()
    self.assertAllClose(outputs.loss.total, (loss.numpy() * weights).sum())
    self.assertAllClose(outputs.loss.weight, 2.5)
    right = logits.argmax(-1) == _Batch().labels.numpy()
    self.assertAllClose(outputs.accuracy.total, (right * weights).sum())
    self.assertAllClose(outputs.accuracy.weight, 2.5)

  def testTop5(self):
    outputs = _Layer(7)(gradient_check.Draw([4, 2, 3, 3], 1), _Batch())
    top5 = softmax_loss.InTopK(outputs.logits, _Batch().labels, 5)
    self.assertAllClose(
      outputs.accuracy_top5, metrics.Weighted(top5, _Batch().weights)
    )
    outputs = _Layer(5)(gradient_check.Draw([4, 2, 3, 3], 1), _Batch())
    self.assertNotIn('accuracy_top5', outputs)

  def testMixup(self):
    x, batch = gradient_check.Draw([4, 2, 3, 3], 1), _Batch()
    batch.mixed_labels = tf.constant([3, 3, 0, 1])
    batch.mix = tf.constant([1.0, 0.25, 0.5, 0.0], tf.float64)
    layer = _Layer(mixup=True, label_smoothing=0.1)
    self.assertCountEqual(layer.BATCH_FIELDS, batch)
    self.assertCountEqual(_Layer().BATCH_FIELDS, _Batch())
    outputs = layer(x, batch)
    losses = [
      softmax_loss.CrossEntropy(outputs.logits, labels, 0.1).numpy()
      for labels in (batch.labels, batch.mixed_labels)
    ]
    mix = batch.mix.numpy()
    mixed = mix * losses[0] + (1.0 - mix) * losses[1]
    self.assertAllClose(
      outputs.loss.total, (mixed * batch.weights.numpy()).sum()
    )
    # Accuracy is that of the image's own label.
    self.assertAllEqual(
      outputs.accuracy, layer(x, batch | {'mix': 0.0 * batch.mix}).accuracy
    )

  def testTakesThePairOfACell(self):
    layer, x = _Layer(), gradient_check.Draw([4, 2, 3, 3], 1)
    alone, pair = layer(x, _Batch()), layer((x, None), _Batch())
    self.assertAllEqual(alone.logits, pair.logits)

  def testTraining(self):
    layer = _Layer(keep_prob=0.5)
    x = gradient_check.Draw([4, 2, 3, 3], 1)

    def _Loss(step):
      with fprop_context.FPropContext(do_eval=False, global_step=step):
        outputs = layer(x, _Batch())
      self.assertNotIn('logits', outputs)
      return outputs.loss.total

    self.assertAllEqual(_Loss(1), _Loss(1))
    self.assertNotAllClose(_Loss(1), _Loss(2))  # Dropout.

  def testExamplesWithoutWeightDoNotMatter(self):
    layer, x = _Layer(), gradient_check.Draw([4, 2, 3, 3], 1)
    other = tf.concat([x[:3], 100.0 * x[3:]], 0)
    for a, b in zip(
      tf.nest.flatten(layer(x, _Batch()).accuracy),
      tf.nest.flatten(layer(other, _Batch()).accuracy),
      strict=True,
    ):
      self.assertAllEqual(a, b)
    self.assertAllClose(
      layer(x, _Batch()).loss.total, layer(other, _Batch()).loss.total
    )


if __name__ == '__main__':
  tf.test.main()
