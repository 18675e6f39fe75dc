"""The Transformer block, a pipeline cell."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import attention, dropout, feed_forward, norm

NestedMap = nested_map.NestedMap


class TransformerBlock(base_layer.BaseLayer):
  """Attention and a feed-forward network, each around a residual.

    x += attention(norm(x))
    x += attention(norm(x), source)    with source_dim only
    x += feed_forward(norm(x))

  Vaswani et al., Attention Is All You Need (arXiv 1706.03762), with the norms
  in front of the layers as in Xiong et al., On Layer Normalization in the
  Transformer Architecture (arXiv 2002.04745): the stream passes all blocks
  without a norm, so deep stacks train. Norm the last block's outputs.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('dim', 0, 'Width of inputs and outputs.')
    p.Define(
      'hidden_dim', 0, "Width of the feed-forward network's hidden layer."
    )
    p.Define('num_heads', 1, 'Of attention; they share dim evenly.')
    p.Define('causal', False, 'Whether a token sees no later ones of its own.')
    p.Define(
      'source_dim',
      None,
      'Width of another sequence to attend to as well, the field `source` of '
      'the inputs; None: there is none.',
    )
    p.Define('activation', 'relu', 'A name of layers/activation.py.')
    p.Define('use_bias', True, 'Whether the matrix products have biases.')
    p.Define('norm_use_bias', True, 'Whether the norms add an offset.')
    p.Define('residual_keep_prob', 1.0, 'Of dropout of what x is added.')
    p.Define('attention_keep_prob', 1.0, 'Of dropout of the probabilities.')
    p.Define('hidden_keep_prob', 1.0, 'Of dropout of the hidden layer.')
    p.Define(
      'output_init_scale',
      1.0,
      'The last matrix of each of the layers starts this many times as large, '
      'for deep stacks; see scaled_init.py.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    own = attention.MultiHeadAttention.Params().Set(
      dim=p.dim,
      num_heads=p.num_heads,
      use_bias=p.use_bias,
      keep_prob=p.attention_keep_prob,
      output_init_scale=p.output_init_scale,
    )
    self._CreateLayer('attention', own.Copy().Set(causal=p.causal))
    if p.source_dim is not None:
      self._CreateLayer('source_attention', own.Set(source_dim=p.source_dim))
    self._CreateLayer(
      'feed_forward',
      feed_forward.FeedForward.Params().Set(
        dim=p.dim,
        hidden_dim=p.hidden_dim,
        activation=p.activation,
        use_bias=p.use_bias,
        keep_prob=p.hidden_keep_prob,
        output_init_scale=p.output_init_scale,
      ),
    )

  def _CreateLayer(self, name: str, params: hyperparams.Params) -> None:
    """A layer with its norm and its dropout."""
    p = self.params
    self.CreateChild(
      f'{name}_norm',
      norm.LayerNorm.Params().Set(dim=p.dim, use_bias=p.norm_use_bias),
    )
    self.CreateChild(name, params)
    self.CreateChild(
      f'{name}_dropout',
      dropout.Dropout.Params().Set(keep_prob=p.residual_keep_prob),
    )

  def _Add(self, theta: NestedMap, name: str, x: tf.Tensor, *args: Any) -> Any:
    """x + dropout(layer(norm(x), ...))."""
    y = x
    for part, extra in ((f'{name}_norm', ()), (name, args)):
      y = self.children[part].FProp(theta[part], y, *extra)
    part = f'{name}_dropout'
    return x + self.children[part].FProp(theta[part], y)

  def FProp(self, theta: NestedMap, inputs: Any) -> Any:
    """Applies the block.

    Args:
      theta: of the norms and layers.
      inputs: x [batch, time, dim], or a NestedMap of it with
        paddings: None or [batch, time], 1.0 at tokens that nothing sees;
        segment_ids: None or int [batch, time], see MultiHeadAttention;
        source: [batch, source time, source_dim], with source_dim only;
        source_paddings, source_segment_ids: None or [batch, source time];
        and any other fields, for later cells.

    Returns:
      The outputs, in the structure of the inputs: only x is another.

    Raises:
      ValueError: for a wrong width, or without the source that is asked for.
    """
    fields = inputs if isinstance(inputs, dict) else NestedMap(x=inputs)
    segment_ids = fields.get('segment_ids')
    x = self._Add(
      theta,
      'attention',
      fields.x,
      None,
      fields.get('paddings'),
      segment_ids,
    )
    if self.params.source_dim is not None:
      x = self._Add(
        theta,
        'source_attention',
        x,
        fields.get('source'),
        fields.get('source_paddings'),
        segment_ids,
        fields.get('source_segment_ids'),
      )
    x = self._Add(theta, 'feed_forward', x)
    return NestedMap({**inputs, 'x': x}) if isinstance(inputs, dict) else x
