"""Softmax cross entropy and accuracies of a classifier."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import weights


def CrossEntropy(
  logits: tf.Tensor, labels: tf.Tensor, label_smoothing: float = 0.0
) -> tf.Tensor:
  """Softmax cross entropy of each example.

  Args:
    logits: [batch, classes].
    labels: integers [batch].
    label_smoothing: share of the target that is spread evenly over all classes
      (Szegedy et al., arXiv 1512.00567).

  Returns:
    [batch], float32 (float64 for such logits).
  """
  logits = tf.cast(logits, weights.AtLeastFloat32(logits.dtype))
  if not label_smoothing:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  num_classes = logits.shape[-1]
  targets = tf.one_hot(
    labels,
    num_classes,
    on_value=1.0 - label_smoothing + label_smoothing / num_classes,
    off_value=label_smoothing / num_classes,
    dtype=logits.dtype,
  )
  return tf.nn.softmax_cross_entropy_with_logits(targets, logits)


def InTopK(logits: tf.Tensor, labels: tf.Tensor, k: int) -> tf.Tensor:
  """1.0 for each example whose label is among its k best classes, else 0.0.

  Among equal logits the lower class comes first, so that a network that says
  the same of all classes is right by chance only; with k=1 this is argmax.
  Logits that are not all finite count as wrong.

  Args:
    logits: [batch, classes].
    labels: integers [batch].
    k: 1 or more.

  Returns:
    float32 [batch].
  """
  labels = tf.cast(labels, tf.int32)[:, tf.newaxis]
  own = tf.gather(logits, labels, axis=1, batch_dims=1)  # [batch, 1]
  before = tf.range(logits.shape[-1]) < labels  # [batch, classes]
  better = (logits > own) | ((logits == own) & before)
  rank = tf.reduce_sum(tf.cast(better, tf.int32), axis=-1)
  finite = tf.reduce_all(tf.math.is_finite(logits), axis=-1)
  return tf.cast((rank < k) & finite, tf.float32)
