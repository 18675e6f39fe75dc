"""Softmax cross entropy and accuracies of a classifier."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import nested_map, weights

# What heads ask of the batch; the latter two where their images are mixed.
_FIELDS = ('labels', 'weights')
_MIXUP_FIELDS = ('mixed_labels', 'mix')


def BatchFields(mixup: bool) -> tuple[str, ...]:
  """The fields of the batch that BatchLoss and accuracies need.

  Args:
    mixup: whether images are mixtures of two.

  Returns:
    Their names.
  """
  return _FIELDS + (_MIXUP_FIELDS if mixup else ())


def BatchLoss(
  logits: tf.Tensor, batch: nested_map.NestedMap, label_smoothing: float
) -> tf.Tensor:
  """Cross entropy with the labels, or with both labels of mixed images.

  Args:
    logits: [batch, classes].
    batch: labels, integers [batch]; where images are mixtures, as in mixup
      (Zhang et al., arXiv 1710.09412), also mixed_labels, integers [batch], of
      the other image, and mix [batch], the share of the first.
    label_smoothing: see CrossEntropy.

  Returns:
    [batch], float32 (float64 for such logits).
  """
  loss = CrossEntropy(logits, batch.labels, label_smoothing)
  if 'mix' not in batch:
    return loss
  other = CrossEntropy(logits, batch.mixed_labels, label_smoothing)
  mix = tf.cast(batch.mix, loss.dtype)
  return mix * loss + (1.0 - mix) * other


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
