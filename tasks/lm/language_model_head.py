"""The last cell of a language model."""

from __future__ import annotations

import math

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, metrics, nested_map
from lingvo_gpipe.layers import norm, softmax

NestedMap = nested_map.NestedMap


class LanguageModelHead(base_layer.BaseLayer):
  """A norm, if wanted, softmax and loss."""

  BATCH_FIELDS = ('labels', 'paddings', 'weights')
  WEIGHS_EXAMPLES = True

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('softmax', softmax.SoftmaxLoss.Params(), 'Its loss.')
    p.Define('use_norm', True, 'Whether inputs are normed.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.use_norm:
      self.CreateChild('norm', norm.LayerNorm.Params().Set(dim=p.softmax.dim))
    self.CreateChild('softmax', p.softmax)

  def UsedWeights(self) -> tuple[str, ...]:
    """The table of the embedding, where it is tied."""
    return self.softmax.UsedWeights()

  def FProp(
    self, theta: NestedMap, inputs: tf.Tensor, batch: NestedMap
  ) -> NestedMap:
    """The loss of the predictions.

    Args:
      theta: of norm and softmax.
      inputs: [batch, time, dim], of the last block.
      batch: labels, int [batch, time]; paddings [batch, time], 1.0 at labels
        that do not count; weights [batch], 0.0 for rows that do not count.

    Returns:
      NestedMap of WeightedSums over the labels that count: loss, log_pplx and
      accuracy of SoftmaxLoss, and bits_per_token, log_pplx to the base 2.
    """
    x = inputs
    if self.params.use_norm:
      x = self.norm.FProp(theta.norm, x)
    rows = tf.cast(batch.weights, batch.paddings.dtype)[:, tf.newaxis]
    fields = NestedMap(x=x, paddings=1.0 - (1.0 - batch.paddings) * rows)
    outputs = self.softmax.FProp(theta.softmax, fields, batch)
    nats = outputs.log_pplx
    outputs.bits_per_token = metrics.WeightedSum(
      nats.total / math.log(2.0), nats.weight
    )
    return outputs
