"""The Transformer block, a pipeline cell."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import (
  attention,
  dropout,
  feed_forward,
  norm,
  scaled_init,
)

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
    p.Define('num_heads', 1, 'Of attention.')
    p.Define(
      'head_dim', None, 'Width of a head of attention; None: dim / num_heads.'
    )
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
    p.Define(
      'feed_forward_init_scale',
      1.0,
      'All matrices of the feed-forward network start this many times as '
      'large, besides output_init_scale. The GPipe paper has 1 / number of '
      'layers for its deep Transformers (section 5).',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    own = attention.MultiHeadAttention.Params().Set(
      dim=p.dim,
      num_heads=p.num_heads,
      head_dim=p.head_dim,
      use_bias=p.use_bias,
      keep_prob=p.attention_keep_prob,
      output_init_scale=p.output_init_scale,
    )
    self._CreateLayer('attention', own.Copy().Set(causal=p.causal))
    if p.source_dim is not None:
      self._CreateLayer('source_attention', own.Set(source_dim=p.source_dim))
    network = feed_forward.FeedForward.Params().Set(
      dim=p.dim,
      hidden_dim=p.hidden_dim,
      activation=p.activation,
      use_bias=p.use_bias,
      keep_prob=p.hidden_keep_prob,
      output_init_scale=p.output_init_scale,
    )
    if p.feed_forward_init_scale != 1.0:
      network.params_init = scaled_init.ScaledInit(
        self.params_init, p.feed_forward_init_scale
      )
    self._CreateLayer('feed_forward', network)

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
    y = self._Norm(theta, name, x)
    y = self.children[name].FProp(theta[name], y, *args)
    part = f'{name}_dropout'
    return x + self.children[part].FProp(theta[part], y)

  def _Norm(self, theta: NestedMap, name: str, x: tf.Tensor) -> tf.Tensor:
    """What a layer gets of x."""
    part = f'{name}_norm'
    return self.children[part].FProp(theta[part], x)

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

  # Decoding, see attention.py. Dropout has no part in it.

  def InitStates(
    self,
    theta: NestedMap,
    rows: Any,
    max_length: int,
    source: tf.Tensor | None = None,
  ) -> NestedMap:
    """What a causal block keeps of sequences that are about to be written.

    Args:
      theta: as for FProp.
      rows: number of sequences.
      max_length: tokens of the longest.
      source: [batch, source time, source_dim], with source_dim only. `rows` is
        a multiple of batch: each source has as many sequences, in order.

    Returns:
      NestedMap of
        own: nest of tensors [rows, ...], of the tokens so far;
        source: nest of tensors [batch, ...], which stay as they are; or None.
    """
    p = self.params
    if not p.causal:
      raise ValueError(
        f'{self.path}: causal=False: a block whose tokens see later ones '
        'cannot write them one by one'
      )
    states = NestedMap(
      own=self.attention.InitStates(theta.attention, rows, max_length),
      source=None,
    )
    if p.source_dim is not None:
      states.source = self.source_attention.SourceStates(
        theta.source_attention, source
      )
    return states

  def ExtendStep(
    self,
    theta: NestedMap,
    x: tf.Tensor,
    states: NestedMap,
    step: tf.Tensor,
    source_paddings: tf.Tensor | None = None,
  ) -> tuple[tf.Tensor, NestedMap]:
    """Applies the block to the next token of each sequence.

    Args:
      theta: as for FProp.
      x: [rows, dim], token `step` of each sequence.
      states: of InitStates, with the tokens before `step`.
      step: int32 scalar.
      source_paddings: None or [batch, source time], as for FProp.

    Returns:
      ([rows, dim], states with this token).
    """
    y, own = self.attention.ExtendStep(
      theta.attention, self._Norm(theta, 'attention', x), states.own, step
    )
    x += y
    if self.params.source_dim is not None:
      # A source's sequences are its queries, as tokens are in training.
      y = self._Norm(theta, 'source_attention', x)
      batch = tf.shape(states.source.key)[0]
      y = self.source_attention.AttendToStates(
        theta.source_attention,
        tf.reshape(y, [batch, -1, self.params.dim]),
        states.source,
        source_paddings,
      )
      x += tf.reshape(y, [-1, self.params.dim])
    x = self._Add(theta, 'feed_forward', x)
    return x, NestedMap(own=own, source=states.source)
