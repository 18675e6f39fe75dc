"""The architectures that depth_training makes deep, and the text of each."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol

from lingvo_gpipe import base_input, hyperparams, nested_map
from lingvo_gpipe.layers import softmax
from tasks.lm import token_files, token_input, transformer_lm
from tasks.mt import django_input, transformer

NestedMap = nested_map.NestedMap


@dataclasses.dataclass(frozen=True)
class Shape:
  """A model's size.

  Attributes:
    num_layers: L, blocks; with encoder and decoder, of each of them.
    dim: width of the stream.
    hidden_dim: width of the feed-forward networks' hidden layers.
    num_heads: of attention.
    head_dim: width of a head.
  """

  num_layers: int
  dim: int
  hidden_dim: int
  num_heads: int
  head_dim: int


class Architecture(Protocol):
  """A kind of model.

  Attributes:
    NAME: of tasks of it; initial values depend on it.
  """

  NAME: ClassVar[str]

  def Cells(
    self,
    shape: Shape,
    *,
    use_norm: bool,
    scale_feed_forward: bool,
    logits_abs_max: float | None,
  ) -> list[hyperparams.InstantiableParams]:
    """The network.

    Args:
      shape: its size.
      use_norm: whether a norm stands between the last block and the softmax.
      scale_feed_forward: whether feed-forward networks start 1/L times as
        large.
      logits_abs_max: that logits are clipped to; None: they are not.

    Returns:
      Cells.
    """

  def Input(
    self, *, batch_size: int, sequence_length: int, seed: int
  ) -> base_input.BaseInput:
    """The text, in an order by the seed.

    Args:
      batch_size: rows of a mini-batch.
      sequence_length: tokens of a row.
      seed: of the order.

    Returns:
      What gives mini-batches.
    """


@dataclasses.dataclass(frozen=True)
class LanguageModel:
  """Blocks that predict the next byte.

  Attributes:
    data_dir: see token_files.py.
  """

  NAME: ClassVar[str] = 'lm'

  data_dir: str = token_files.PYTHON_SOURCES

  def Cells(
    self,
    shape: Shape,
    *,
    use_norm: bool,
    scale_feed_forward: bool,
    logits_abs_max: float | None,
  ) -> list[hyperparams.InstantiableParams]:
    """See Architecture."""
    cells = transformer_lm.TransformerLm(
      **dataclasses.asdict(shape),
      vocab_size=token_files.TEXT_VOCAB_SIZE,
      use_norm=use_norm,
      scale_feed_forward=scale_feed_forward,
      logits_abs_max=logits_abs_max,
    ).Cells()
    _RemoveBiases(cells)
    return cells

  def Input(
    self, *, batch_size: int, sequence_length: int, seed: int
  ) -> base_input.BaseInput:
    """See Architecture."""
    return (
      token_input.TokenInput.Params()
      .Set(
        data_dir=self.data_dir,
        training=True,
        batch_size=batch_size,
        sequence_length=sequence_length,
        random_seed=seed,
      )
      .Instantiate()
    )


@dataclasses.dataclass(frozen=True)
class EncoderDecoder:
  """Translation: L blocks of an encoder, and L of a decoder.

  Without dropout and label smoothing, so that losses are nats per token. The
  encoder's outputs always have a norm, as in all models of tasks/mt.

  Attributes:
    data_dir: what tools/mt/prepare wrote; '': Django's texts.
    vocab_size: ids of the vocabulary.
  """

  NAME: ClassVar[str] = 'mt'

  data_dir: str = ''
  vocab_size: int = 4000

  def Cells(
    self,
    shape: Shape,
    *,
    use_norm: bool,
    scale_feed_forward: bool,
    logits_abs_max: float | None,
  ) -> list[hyperparams.InstantiableParams]:
    """See Architecture."""
    cells = transformer.Transformer(
      **dataclasses.asdict(shape),
      vocab_size=self.vocab_size,
      label_smoothing=0.0,
      keep_prob=1.0,
      scale_feed_forward=scale_feed_forward,
      logits_abs_max=logits_abs_max,
      packed=True,
    ).Cells()
    _RemoveBiases(cells)
    if not use_norm:
      output = cells[-1]
      cells[-1] = StreamSoftmax.Params().Set(
        name=output.name,
        **{
          key: output.softmax.Get(key)
          for key in ('dim', 'vocab_size', 'logits_abs_max', 'paddings_field')
        },
      )
    return cells

  def Input(
    self, *, batch_size: int, sequence_length: int, seed: int
  ) -> base_input.BaseInput:
    """See Architecture."""
    return (
      django_input.DjangoInput.Params()
      .Set(
        data_dir=self.data_dir,
        vocab_size=self.vocab_size,
        training=True,
        split='train',
        batch_size=batch_size,
        bucket_lengths=[sequence_length],
        packing=True,
        random_seed=seed,
      )
      .Instantiate()
    )


class StreamSoftmax(softmax.SoftmaxLoss):
  """SoftmaxLoss of what travels between decoder blocks, without a norm."""

  def FProp(
    self, theta: NestedMap, inputs: NestedMap, batch: NestedMap
  ) -> NestedMap:
    """The loss of the decoder's predictions.

    Args:
      theta: of SoftmaxLoss.
      inputs: NestedMap of x [batch, target time, dim].
      batch: the BATCH_FIELDS.

    Returns:
      What SoftmaxLoss returns.
    """
    return super().FProp(theta, inputs.x, batch)


def _RemoveBiases(cells: list[hyperparams.InstantiableParams]) -> None:
  """Vectors would double the number of variables, and the time to trace."""
  for cell in cells:
    if 'norm_use_bias' in cell:
      cell.Set(use_bias=False, norm_use_bias=False)
