"""The last cell of an image classifier: loss, accuracy, predictions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, metrics, nested_map
from lingvo_gpipe.layers import dense, dropout, pooling
from tasks.image import softmax_loss

NestedMap = nested_map.NestedMap

# Top-5 accuracy says nothing of fewer classes than these.
_MIN_CLASSES_FOR_TOP5 = 6


class ClassifierHead(base_layer.BaseLayer):
  """ReLU, global average pooling, dropout, dense, softmax cross entropy.

  The batch has `labels`, integers [batch], and `weights` [batch]: 1, and 0 for
  examples that only fill up a batch. With `mixup` it also has what
  softmax_loss.BatchLoss says.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('input_dim', 0, 'Channels of the image.')
    p.Define('num_classes', 0, 'Number of classes.')
    p.Define('keep_prob', 1.0, 'Of the dropout before the dense layer.')
    p.Define('label_smoothing', 0.0, 'See softmax_loss.CrossEntropy.')
    p.Define('mixup', False, 'Whether images are mixtures of two.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    self.CreateChild(
      'dropout', dropout.Dropout.Params().Set(keep_prob=p.keep_prob)
    )
    self.CreateChild(
      'dense',
      dense.Dense.Params().Set(
        input_dim=p.input_dim,
        output_dim=p.num_classes,
        params_init=p.params_init,
      ),
    )

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Labels, weights and, with mixup, the other labels."""
    return softmax_loss.BatchFields(self.params.mixup)

  def FProp(self, theta: NestedMap, inputs: Any, batch: NestedMap) -> NestedMap:
    """Classifies images.

    Args:
      theta: of the layers.
      inputs: [batch, h, w, input_dim], or a pair (that, skip).
      batch: the BATCH_FIELDS, [batch] each.

    Returns:
      A NestedMap of WeightedSums over the examples: loss, accuracy and, with
      more than five classes, accuracy_top5; in evaluation also logits [batch,
      num_classes].
    """
    p = self.params
    image = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
    features = pooling.GlobalAverage(tf.nn.relu(image))  # [batch, input_dim]
    features = self.dropout.FProp(theta.dropout, features)
    logits = self.dense.FProp(theta.dense, features)
    return Outputs(
      logits, batch, label_smoothing=p.label_smoothing, with_logits=self.do_eval
    )


def Outputs(
  logits: tf.Tensor,
  batch: NestedMap,
  *,
  label_smoothing: float,
  with_logits: bool,
) -> NestedMap:
  """What a classifier's last cell returns; see ClassifierHead.FProp."""
  num_classes = logits.shape[-1]
  loss = softmax_loss.BatchLoss(logits, batch, label_smoothing)
  outputs = NestedMap(
    loss=metrics.Weighted(loss, batch.weights),
    accuracy=metrics.Weighted(
      softmax_loss.InTopK(logits, batch.labels, 1), batch.weights
    ),
  )
  if num_classes >= _MIN_CLASSES_FOR_TOP5:
    outputs.accuracy_top5 = metrics.Weighted(
      softmax_loss.InTopK(logits, batch.labels, 5), batch.weights
    )
  if with_logits:
    outputs.logits = logits
  return outputs
