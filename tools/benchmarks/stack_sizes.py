"""Sizes of the Transformer stack that the tools measure."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sizes:
  """A stack of pre-norm Transformer blocks without biases, and its mini-batch.

  Attributes:
    layers: number of blocks.
    model_dim: width of the stream of tokens.
    ffn_dim: width of the feed-forward networks' hidden layer.
    heads: of attention.
    tokens: in an example.
    batch: examples in a mini-batch.
  """

  layers: int
  model_dim: int
  ffn_dim: int
  heads: int
  tokens: int
  batch: int

  def __post_init__(self):
    if self.model_dim % self.heads:
      raise ValueError(
        f'model_dim={self.model_dim} is not a multiple of heads={self.heads} '
        '(--model_dim, --heads)'
      )

  @property
  def params(self) -> int:
    """Number of weights."""
    d = self.model_dim
    return self.layers * (4 * d * d + 2 * d * self.ffn_dim + 2 * d)

  @property
  def tokens_per_step(self) -> int:
    """Tokens in a mini-batch."""
    return self.batch * self.tokens

  @property
  def flops_per_step(self) -> int:
    """Floating-point operations of the matrix products, nothing recomputed.

    A weight takes part in a multiplication and an addition for each token, in
    the forward pass and twice in the backward pass; so does attention.
    """
    d = self.model_dim
    products = 4 * d * d + 2 * d * self.ffn_dim + 2 * self.tokens * d
    return 6 * products * self.layers * self.tokens_per_step

  def ToJson(self) -> dict[str, int]:
    return dataclasses.asdict(self)


PRESETS = {
  'standard': Sizes(8, 256, 1024, 4, 64, 32),
  'wide_batch': Sizes(8, 256, 1024, 4, 64, 256),
  'wide_model': Sizes(8, 512, 2048, 8, 64, 32),
  'small': Sizes(4, 16, 32, 2, 8, 8),
}
