"""The loss of a language model, its last cell."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, metrics, nested_map, weights
from lingvo_gpipe.layers import tied_table

NestedMap = nested_map.NestedMap
WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit


class SoftmaxLoss(base_layer.BaseLayer):
  """Cross entropy of labels under softmax(x w + b), token by token.

  Label smoothing is that of Szegedy et al., Rethinking the Inception
  Architecture (arXiv 1512.00567), section 7: the target is
  1 - label_smoothing for the label, plus label_smoothing / vocab_size for all.
  """

  WEIGHS_EXAMPLES = True

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('dim', 0, 'Width of the inputs.')
    p.Define('vocab_size', 0, 'Number of classes.')
    p.Define(
      'tied_weight',
      None,
      'Name of the [vocab_size, dim] weight of another cell to use for w '
      '(TokenEmbedding, param shared_name); None: a w of its own.',
    )
    p.Define('use_bias', True, 'Whether b is added.')
    p.Define('label_smoothing', 0.0, 'Share of the target for all classes.')
    p.Define(
      'logits_abs_max',
      None,
      'Logits are clipped to [-logits_abs_max, logits_abs_max]; None: are not. '
      'A clipped logit has no gradient.',
    )
    p.Define('labels_field', 'labels', "The batch's field of labels.")
    p.Define(
      'paddings_field',
      None,
      "The batch's field of paddings, 1.0 at tokens that do not count; None: "
      'the field `paddings` of the inputs, if they are a NestedMap with one.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('dim', 'vocab_size'):
      if p.Get(name) < 1:
        raise ValueError(f'{self.path}: {name}={p.Get(name)} must be 1 or more')
    if not 0.0 <= p.label_smoothing < 1.0:
      raise ValueError(
        f'{self.path}: label_smoothing={p.label_smoothing} must be in [0, 1)'
      )
    if p.logits_abs_max is not None and not p.logits_abs_max > 0.0:
      raise ValueError(
        f'{self.path}: logits_abs_max={p.logits_abs_max} must be above 0'
      )
    if not p.labels_field:
      raise ValueError(f'{self.path}: its param "labels_field" is empty')
    if not p.tied_weight:
      self.CreateVariable(
        'w', WeightParams((p.dim, p.vocab_size), collections=('l2',))
      )
    if p.use_bias:
      self.CreateVariable(
        'b', WeightParams((p.vocab_size,), WeightInit.Constant(0.0))
      )

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Labels and, with param paddings_field, paddings."""
    p = self.params
    return tuple(x for x in (p.labels_field, p.paddings_field) if x)

  def UsedWeights(self) -> tuple[str, ...]:
    """The tied weight."""
    name = self.params.tied_weight
    return (name,) if name else ()

  def FProp(self, theta: NestedMap, inputs: Any, batch: NestedMap) -> NestedMap:
    """The loss, and how good the predictions are.

    Logits, in the dtype of the inputs, are turned into losses in float32 or
    better.

    Args:
      theta: w [dim, vocab_size] unless tied; b [vocab_size] with use_bias.
      inputs: x [batch, ..., dim], or a NestedMap with it.
      batch: labels, int [batch, ...]; with paddings_field paddings of the same
        shape. Labels of padding must be classes too.

    Returns:
      NestedMap of WeightedSums over the tokens that are no padding:
        loss: the cross entropy that is trained;
        log_pplx: the cross entropy without label smoothing;
        accuracy: whether the label has the largest logit.

    Raises:
      ValueError: for inputs of another width.
    """
    p = self.params
    fields = inputs if isinstance(inputs, dict) else NestedMap(x=inputs)
    labels = tf.reshape(batch[p.labels_field], [-1])
    logits = self.Logits(theta, fields.x)
    if p.label_smoothing:
      losses, log_pplx = _Smoothed(labels, logits, p.label_smoothing)
    else:
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
      log_pplx = losses
    if p.paddings_field:
      paddings = batch[p.paddings_field]
    else:
      paddings = fields.get('paddings')
    if paddings is None:
      counted = tf.ones_like(losses)
    else:
      counted = 1.0 - tf.cast(tf.reshape(paddings, [-1]), losses.dtype)
    if self.example_weights is not None:
      counted *= self._TokenWeights(losses)
    best = tf.argmax(logits, -1, labels.dtype)
    right = tf.cast(tf.equal(best, labels), losses.dtype)
    return NestedMap(
      loss=metrics.Weighted(losses, counted),
      log_pplx=metrics.Weighted(log_pplx, counted),
      accuracy=metrics.Weighted(right, counted),
    )

  def _TokenWeights(self, losses: tf.Tensor) -> tf.Tensor:
    """[tokens], 0 for those of rows that only fill up the micro-batch."""
    examples = tf.cast(self.example_weights, losses.dtype)
    return tf.repeat(examples, losses.shape[0] // examples.shape[0])

  def Logits(self, theta: NestedMap, x: tf.Tensor) -> tf.Tensor:
    """Scores of all classes.

    Args:
      theta: as for FProp.
      x: [..., dim].

    Returns:
      [tokens, vocab_size], float32 or better, one row for each vector of x.

    Raises:
      ValueError: for x, or a tied weight, of another width.
    """
    p = self.params
    if x.shape[-1] != p.dim:
      raise ValueError(
        f'{self.path}: inputs {x.shape} end in {x.shape[-1]}, but dim={p.dim}'
      )
    rows = tf.reshape(x, [-1, p.dim])
    if p.tied_weight:
      table = tied_table.TiedTable(self)
      logits = tf.matmul(rows, table, transpose_b=True)
    else:
      logits = tf.matmul(rows, theta.w)
    if p.use_bias:
      logits = tf.nn.bias_add(logits, theta.b)
    logits = tf.cast(logits, weights.AtLeastFloat32(logits.dtype))
    if p.logits_abs_max is not None:
      logits = tf.clip_by_value(logits, -p.logits_abs_max, p.logits_abs_max)
    return logits


def _Smoothed(
  labels: tf.Tensor, logits: tf.Tensor, smoothing: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Cross entropy with label smoothing, and without it.

  Args:
    labels: int [tokens].
    logits: [tokens, classes].
    smoothing: share of the target that all classes have evenly.

  Returns:
    ([tokens], [tokens]); the second has no gradient.
  """
  classes = logits.shape[-1]
  off = smoothing / classes
  on = 1.0 - smoothing + off
  targets = tf.one_hot(labels, classes, on, off, dtype=logits.dtype)
  losses = tf.nn.softmax_cross_entropy_with_logits(targets, logits)
  # The two differ by smoothing * (logit of the label - mean logit), so that
  # the large kernel runs once.
  fixed = tf.stop_gradient(logits)
  of_label = tf.gather(fixed, labels, batch_dims=1)
  difference = smoothing * (of_label - tf.reduce_mean(fixed, -1))
  return losses, tf.stop_gradient(losses) - difference
