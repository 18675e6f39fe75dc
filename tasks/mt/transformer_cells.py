"""The cells of an encoder-decoder Transformer.

Vaswani et al., Attention Is All You Need (arXiv 1706.03762), with the norm
before each layer. Huang et al. (arXiv 1811.06965, section 5) call T(L, H, A)
the one with L blocks in the encoder and L in the decoder, of hidden width H and
A heads.

  SourceEmbedding, L EncoderBlocks, TargetEmbedding, L DecoderBlocks, Output

Between encoder blocks travels x [batch, source time, dim]; after them a
NestedMap of x [batch, target time, dim] and source [batch, source time, dim],
the encoder's outputs. Ids, paddings and positions do not travel: they go from
the batch to the cells that ask for them (BATCH_FIELDS):

  inputs, source_paddings        [batch, source time]
  target_ids, labels, target_paddings    [batch, target time]

and for `packed` rows, of several sentences each, also source_positions,
source_segment_ids, target_positions and target_segment_ids. `target_ids` are
the labels, one place later, after a first token.
"""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import embedding, norm, softmax, transformer

NestedMap = nested_map.NestedMap

_PACKED = 'Whether rows hold several sentences.'


class SourceEmbedding(embedding.TokenEmbedding):
  """The first cell: vectors of the source's tokens."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('packed', False, _PACKED)
    return p

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Positions, where rows hold several sentences."""
    return ('source_positions',) if self.params.packed else ()

  def FProp(
    self, theta: NestedMap, inputs: tf.Tensor, batch: NestedMap | None = None
  ) -> tf.Tensor:
    """Looks the vectors up.

    Args:
      theta: of TokenEmbedding.
      inputs: int ids [batch, source time].
      batch: the BATCH_FIELDS.

    Returns:
      [batch, source time, dim].
    """
    positions = batch.source_positions if self.params.packed else None
    fields = NestedMap(ids=inputs, positions=positions)
    return super().FProp(theta, fields).x


class EncoderBlock(transformer.TransformerBlock):
  """A block whose tokens see all of their source sentence."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('packed', False, _PACKED)
    return p

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Paddings, or what is more: of which sentence a token is."""
    return (
      ('source_segment_ids',) if self.params.packed else ('source_paddings',)
    )

  def FProp(
    self, theta: NestedMap, inputs: tf.Tensor, batch: NestedMap
  ) -> tf.Tensor:
    """Applies the block.

    Args:
      theta: of TransformerBlock.
      inputs: x [batch, source time, dim].
      batch: the BATCH_FIELDS.

    Returns:
      [batch, source time, dim].
    """
    packed = self.params.packed
    fields = NestedMap(
      x=inputs,
      paddings=None if packed else batch.source_paddings,
      segment_ids=batch.source_segment_ids if packed else None,
    )
    return super().FProp(theta, fields).x


class TargetEmbedding(base_layer.BaseLayer):
  """Between encoder and decoder: the norm of one, the first cell of the other.

  The table may be that of the source (TokenEmbedding, param tied_weight).
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('embedding', embedding.TokenEmbedding.Params(), 'Of the target.')
    p.Define('packed', False, _PACKED)
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    self.CreateChild(
      'source_norm', norm.LayerNorm.Params().Set(dim=p.embedding.dim)
    )
    self.CreateChild('embedding', p.embedding)

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """What the decoder reads, and where rows hold several sentences its
    positions.
    """
    return ('target_ids',) + (
      ('target_positions',) if self.params.packed else ()
    )

  def UsedWeights(self) -> tuple[str, ...]:
    """The table, where it is tied."""
    return self.embedding.UsedWeights()

  def FProp(
    self, theta: NestedMap, inputs: tf.Tensor, batch: NestedMap
  ) -> NestedMap:
    """Ends the encoder and begins the decoder.

    Args:
      theta: of the layers.
      inputs: [batch, source time, dim], of the last encoder block.
      batch: the BATCH_FIELDS.

    Returns:
      NestedMap of x [batch, target time, dim] and source, like inputs.
    """
    fields = NestedMap(
      ids=batch.target_ids, positions=batch.get('target_positions')
    )
    return NestedMap(
      x=self.embedding.FProp(theta.embedding, fields).x,
      source=self.Source(theta, inputs),
    )

  def Source(self, theta: NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """The encoder's outputs as the decoder sees them.

    Args:
      theta: of the layers.
      inputs: [batch, source time, dim], of the last encoder block.

    Returns:
      Likewise.
    """
    return self.source_norm.FProp(theta.source_norm, inputs)

  def ExtendStep(
    self, theta: NestedMap, ids: tf.Tensor, step: tf.Tensor
  ) -> tf.Tensor:
    """The vectors of the tokens at one place.

    Args:
      theta: of the layers.
      ids: int [rows].
      step: int32 scalar, the place.

    Returns:
      [rows, dim].
    """
    fields = NestedMap(ids=ids[:, tf.newaxis], positions=step[tf.newaxis])
    return self.embedding.FProp(theta.embedding, fields).x[:, 0]


class DecoderBlock(transformer.TransformerBlock):
  """A block whose tokens see those before them, and their source sentence."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.causal = True
    p.Define('packed', False, _PACKED)
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    if params.source_dim is None:
      params = params.Copy().Set(source_dim=params.dim)
    super().__init__(params)

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """The source's paddings, or what is more: of which sentence a token is."""
    if self.params.packed:
      return 'source_segment_ids', 'target_segment_ids'
    return ('source_paddings',)

  def FProp(
    self, theta: NestedMap, inputs: NestedMap, batch: NestedMap
  ) -> NestedMap:
    """Applies the block.

    Padding of the target needs no mask: it comes after all that counts.

    Args:
      theta: of TransformerBlock.
      inputs: NestedMap of x [batch, target time, dim] and source [batch, source
        time, dim].
      batch: the BATCH_FIELDS.

    Returns:
      Likewise.
    """
    fields = NestedMap(
      x=inputs.x,
      segment_ids=batch.get('target_segment_ids'),
      source=inputs.source,
      source_paddings=batch.get('source_paddings'),
      source_segment_ids=batch.get('source_segment_ids'),
    )
    return NestedMap(x=super().FProp(theta, fields).x, source=inputs.source)


class Output(base_layer.BaseLayer):
  """The last cell: the decoder's norm, softmax and loss."""

  WEIGHS_EXAMPLES = True

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'softmax',
      softmax.SoftmaxLoss.Params().Set(paddings_field='target_paddings'),
      'Its loss.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    self.CreateChild('norm', norm.LayerNorm.Params().Set(dim=p.softmax.dim))
    self.CreateChild('softmax', p.softmax)

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Labels and paddings."""
    return self.softmax.BATCH_FIELDS

  def UsedWeights(self) -> tuple[str, ...]:
    """The table, where it is tied."""
    return self.softmax.UsedWeights()

  def FProp(
    self, theta: NestedMap, inputs: NestedMap, batch: NestedMap
  ) -> NestedMap:
    """The loss of the decoder's predictions.

    Args:
      theta: of the layers.
      inputs: NestedMap of x [batch, target time, dim].
      batch: the BATCH_FIELDS.

    Returns:
      What SoftmaxLoss returns.
    """
    x = self.norm.FProp(theta.norm, inputs.x)
    return self.softmax.FProp(theta.softmax, x, batch)

  def Logits(self, theta: NestedMap, x: tf.Tensor) -> tf.Tensor:
    """Scores of all ids.

    Args:
      theta: of the layers.
      x: [rows, dim], of the last decoder block.

    Returns:
      [rows, vocab_size].
    """
    return self.softmax.Logits(theta.softmax, self.norm.FProp(theta.norm, x))
