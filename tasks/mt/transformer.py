"""T(L, H, A): the list of cells of an encoder-decoder Transformer."""

from __future__ import annotations

import dataclasses

from lingvo_gpipe import hyperparams
from tasks.mt import transformer_cells

# How weights are shared, by the number of [vocab_size, dim] matrices.
TIED = ('none', 'embeddings', 'all')
_TABLE = 'token_embedding'


@dataclasses.dataclass(frozen=True)
class Transformer:
  """A description, from which the cells come.

  Attributes:
    num_layers: L, blocks of the encoder, and as many of the decoder.
    hidden_dim: H, width of the feed-forward networks' hidden layers.
    num_heads: A.
    vocab_size: ids, the same for source and target.
    dim: width of the stream.
    head_dim: of attention, of which the width is num_heads * head_dim; the
      paper's models have 64 whatever dim is. None: dim / num_heads.
    tied: 'none': source embedding, target embedding and softmax have a matrix
      each; 'embeddings': the first two share one; 'all': all three do.
    label_smoothing: see SoftmaxLoss.
    logits_abs_max: see SoftmaxLoss; None: logits are not clipped.
    keep_prob: of the dropouts of embeddings and after each layer.
    attention_keep_prob: of the dropout of attention.
    hidden_keep_prob: of the dropout within feed-forward networks.
    activation: of feed-forward networks.
    scale_feed_forward: whether their matrices start 1/L times as large, without
      which deep models diverged (arXiv 1811.06965, section 5, "Trainability
      Challenges with Deep Models").
    packed: whether rows hold several sentences.
  """

  num_layers: int
  hidden_dim: int
  num_heads: int
  vocab_size: int
  dim: int = 1024
  head_dim: int | None = 64
  tied: str = 'embeddings'
  label_smoothing: float = 0.1
  logits_abs_max: float | None = 30.0
  keep_prob: float = 0.9
  attention_keep_prob: float = 1.0
  hidden_keep_prob: float = 1.0
  activation: str = 'relu'
  scale_feed_forward: bool = True
  packed: bool = False

  def __post_init__(self):
    if self.num_layers < 1:
      raise ValueError(f'num_layers={self.num_layers} must be 1 or more')
    if self.tied not in TIED:
      raise ValueError(f'tied={self.tied!r} is none of {", ".join(TIED)}')

  def Cells(self) -> list[hyperparams.InstantiableParams]:
    """The cells, 2 L + 3 of them; transformer_cells.py says what they do."""
    source = transformer_cells.SourceEmbedding.Params()
    encoder = transformer_cells.EncoderBlock.Params()
    target = transformer_cells.TargetEmbedding.Params()
    decoder = transformer_cells.DecoderBlock.Params()
    output = transformer_cells.Output.Params()
    for p in (source, encoder, target, decoder):
      p.packed = self.packed
    self._SetEmbedding(source.Set(name='source_embedding'))
    self._SetEmbedding(target.Set(name='target_embedding').embedding)
    if self.tied != 'none':
      source.shared_name = _TABLE
      target.embedding.tied_weight = _TABLE
    self._SetBlock(encoder)
    self._SetBlock(decoder)
    self._SetSoftmax(output.Set(name='output').softmax)
    return [
      source,
      *self._Blocks('encoder', encoder),
      target,
      *self._Blocks('decoder', decoder),
      output,
    ]

  def _SetEmbedding(self, p: hyperparams.InstantiableParams) -> None:
    p.Set(vocab_size=self.vocab_size, dim=self.dim, keep_prob=self.keep_prob)

  def _SetBlock(self, p: hyperparams.InstantiableParams) -> None:
    p.Set(
      dim=self.dim,
      hidden_dim=self.hidden_dim,
      num_heads=self.num_heads,
      head_dim=self.head_dim,
      activation=self.activation,
      residual_keep_prob=self.keep_prob,
      attention_keep_prob=self.attention_keep_prob,
      hidden_keep_prob=self.hidden_keep_prob,
    )
    if self.scale_feed_forward:
      p.feed_forward_init_scale = 1.0 / self.num_layers

  def _SetSoftmax(self, p: hyperparams.InstantiableParams) -> None:
    p.Set(
      dim=self.dim,
      vocab_size=self.vocab_size,
      label_smoothing=self.label_smoothing,
      logits_abs_max=self.logits_abs_max,
    )
    if self.tied == 'all':
      p.tied_weight = _TABLE

  def _Blocks(
    self, name: str, block: hyperparams.InstantiableParams
  ) -> list[hyperparams.InstantiableParams]:
    return [
      block.Copy().Set(name=f'{name}_{i}') for i in range(self.num_layers)
    ]
