"""A decoder-only Transformer as a list of cells."""

from __future__ import annotations

import dataclasses

from lingvo_gpipe import hyperparams
from lingvo_gpipe.layers import embedding, softmax, transformer
from tasks.lm import language_model_head

_TABLE = 'token_embedding'


@dataclasses.dataclass(frozen=True)
class TransformerLm:
  """A description of a language model, from which its cells come.

  The paper's (arXiv 1811.06965, Table 1) has no norm at its end and no weights
  tied: num_layers * 50,358,272 + 131,104,000 parameters.

  Attributes:
    num_layers: L, blocks.
    dim: width of the stream.
    hidden_dim: width of the feed-forward networks' hidden layers.
    num_heads: of attention.
    vocab_size: number of ids.
    head_dim: width of a head; None: dim / num_heads.
    use_norm: whether there is a norm after the last block.
    tied: whether embedding and softmax have one table in common.
    label_smoothing: see SoftmaxLoss.
    logits_abs_max: see SoftmaxLoss; None: logits are not clipped.
    keep_prob: of the dropouts of embeddings and after each layer.
    attention_keep_prob: of the dropout of attention.
    hidden_keep_prob: of the dropout within feed-forward networks.
    activation: of feed-forward networks.
    scale_feed_forward: whether their matrices start 1/L times as large, without
      which the paper's deep models diverged (section 5, "Trainability
      Challenges with Deep Models").
    output_init_scale: see TransformerBlock.
  """

  num_layers: int
  dim: int
  hidden_dim: int
  num_heads: int
  vocab_size: int
  head_dim: int | None = None
  use_norm: bool = True
  tied: bool = False
  label_smoothing: float = 0.0
  logits_abs_max: float | None = None
  keep_prob: float = 1.0
  attention_keep_prob: float = 1.0
  hidden_keep_prob: float = 1.0
  activation: str = 'relu'
  scale_feed_forward: bool = False
  output_init_scale: float = 1.0

  def __post_init__(self):
    if self.num_layers < 1:
      raise ValueError(f'num_layers={self.num_layers} must be 1 or more')

  def Cells(self) -> list[hyperparams.InstantiableParams]:
    """The cells, L + 2 of them: embedding, block_0, block_1, ..., head."""
    return [
      self._Embedding(),
      *(self._Block().Set(name=f'block_{i}') for i in range(self.num_layers)),
      self._Head(),
    ]

  def _Embedding(self) -> hyperparams.InstantiableParams:
    return embedding.TokenEmbedding.Params().Set(
      name='embedding',
      vocab_size=self.vocab_size,
      dim=self.dim,
      keep_prob=self.keep_prob,
      shared_name=_TABLE if self.tied else None,
    )

  def _Block(self) -> hyperparams.InstantiableParams:
    p = transformer.TransformerBlock.Params().Set(
      dim=self.dim,
      hidden_dim=self.hidden_dim,
      num_heads=self.num_heads,
      head_dim=self.head_dim,
      causal=True,
      activation=self.activation,
      residual_keep_prob=self.keep_prob,
      attention_keep_prob=self.attention_keep_prob,
      hidden_keep_prob=self.hidden_keep_prob,
      output_init_scale=self.output_init_scale,
    )
    if self.scale_feed_forward:
      p.feed_forward_init_scale = 1.0 / self.num_layers
    return p

  def _Head(self) -> hyperparams.InstantiableParams:
    return language_model_head.LanguageModelHead.Params().Set(
      name='head',
      use_norm=self.use_norm,
      softmax=softmax.SoftmaxLoss.Params().Set(
        dim=self.dim,
        vocab_size=self.vocab_size,
        tied_weight=_TABLE if self.tied else None,
        label_smoothing=self.label_smoothing,
        logits_abs_max=self.logits_abs_max,
      ),
    )
