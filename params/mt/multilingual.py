"""Massively multilingual translation: the GPipe paper's models.

Huang et al. (arXiv 1811.06965), section 5: one model for 102 languages, T(L, H,
A) of L encoder and L decoder layers with feed-forward networks of width H and A
heads of 64, in a stream of width 1024, on 64,000 subwords. Their corpus is not
public; these train on any data that tools/mt/prepare has written, with
--data_dir (docs/translation_data.md).

The paper leaves its recipe to its supplement and other work of its authors;
what stands here is the one that a later paper of the group gives (Kudugunta et
al., arXiv 1909.02197): Adafactor, learning rate 3.0, 40,000 steps of warm-up,
then the inverse square root of the step, updates clipped for each variable.
Languages are sampled with temperature 5. Batch size and dropout are ours.
"""

from __future__ import annotations

from lingvo_gpipe import base_model_params, hyperparams, registry
from lingvo_gpipe.train import adafactor, optimizers, schedules
from tasks.mt import transformer, translation_input, translation_task


class Multilingual(base_model_params.SplitModelParams):
  """The base class: data and recipe.

  Attributes of subclasses:
    NUM_LAYERS: L.
    HIDDEN_DIM: H.
    NUM_HEADS: A.
    DIM: width of the stream.
    HEAD_DIM: width of a head.
    VOCAB_SIZE: of the prepared data.
    NUM_PARTITIONS: K.
    NUM_MICRO_BATCHES: M.
    BATCH_TOKENS: of a mini-batch, on each side, padding included.
    BUCKET_LENGTHS: that sentences are padded to.
    TEMPERATURE: of the sampling of languages.
    KEEP_PROB: of the dropout of embeddings and layers.
    MAX_STEPS: of training.
    WARMUP_STEPS: of the learning rate.
  """

  NUM_LAYERS = 6
  HIDDEN_DIM = 8192
  NUM_HEADS = 16
  DIM = 1024
  HEAD_DIM = 64
  VOCAB_SIZE = 64_000
  NUM_PARTITIONS = 2
  NUM_MICRO_BATCHES = 32
  BATCH_TOKENS = 262_144
  BUCKET_LENGTHS = (16, 32, 64, 128)
  TEMPERATURE = 5.0
  KEEP_PROB = 0.9
  MAX_STEPS = 500_000
  WARMUP_STEPS = 40_000

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return translation_input.TranslationInput.Params().Set(
      split=split,
      temperature=self.TEMPERATURE,
      vocab_size=self.VOCAB_SIZE,
      batch_tokens=self.BATCH_TOKENS,
      bucket_lengths=list(self.BUCKET_LENGTHS),
      batch_multiple=self.NUM_MICRO_BATCHES,
    )

  def Transformer(self) -> transformer.Transformer:
    """What the network is."""
    return transformer.Transformer(
      num_layers=self.NUM_LAYERS,
      hidden_dim=self.HIDDEN_DIM,
      num_heads=self.NUM_HEADS,
      vocab_size=self.VOCAB_SIZE,
      dim=self.DIM,
      head_dim=self.HEAD_DIM,
      keep_prob=self.KEEP_PROB,
    )

  def Task(self) -> hyperparams.InstantiableParams:
    p = translation_task.Params(
      self.Transformer(),
      num_partitions=self.NUM_PARTITIONS,
      num_micro_batches=self.NUM_MICRO_BATCHES,
    )
    p.train.Set(max_steps=self.MAX_STEPS)
    p.eval.interval_steps = 5000
    p.train.learner.Set(
      optimizer=self._Optimizer(),
      learning_rate=3.0,
      lr_schedule=schedules.Transformer.Params().Set(
        warmup_steps=self.WARMUP_STEPS
      ),
    )
    return p

  def _Optimizer(self) -> hyperparams.InstantiableParams:
    return adafactor.Adafactor.Params()


@registry.RegisterSingleTaskModel
class T6x8192x16(Multilingual):
  """T(6, 8192, 16), 0.4B parameters: the paper's smallest."""


@registry.RegisterSingleTaskModel
class T24x8192x16(Multilingual):
  """T(24, 8192, 16), 1.3B parameters, deep, on 4 partitions."""

  NUM_LAYERS = 24
  NUM_PARTITIONS = 4


@registry.RegisterSingleTaskModel
class T12x16384x32(Multilingual):
  """T(12, 16384, 32), 1.3B parameters, wide, on 2 partitions."""

  NUM_LAYERS = 12
  HIDDEN_DIM = 16_384
  NUM_HEADS = 32


@registry.RegisterSingleTaskModel
class T32x16384x32(Multilingual):
  """T(32, 16384, 32), 3B parameters, on 8 partitions."""

  NUM_LAYERS = 32
  HIDDEN_DIM = 16_384
  NUM_HEADS = 32
  NUM_PARTITIONS = 8


@registry.RegisterSingleTaskModel
class T64x16384x32(Multilingual):
  """T(64, 16384, 32), 6B parameters, 128 layers, on 16 partitions."""

  NUM_LAYERS = 64
  HIDDEN_DIM = 16_384
  NUM_HEADS = 32
  NUM_PARTITIONS = 16


@registry.RegisterSingleTaskModel
class TransformerBig(Multilingual):
  """Transformer Big, 0.35B parameters: the paper's bilingual baseline.

  Vaswani et al. (arXiv 1706.03762), table 3, with the vocabulary of 32,000 and
  the width 8192 by which it has the paper's 350M parameters.
  """

  VOCAB_SIZE = 32_000
  NUM_PARTITIONS = 1
  NUM_MICRO_BATCHES = 1
  WARMUP_STEPS = 16_000

  def _Optimizer(self) -> hyperparams.InstantiableParams:
    return optimizers.Adam.Params().Set(beta2=0.98, epsilon=1e-9)

  def Task(self) -> hyperparams.InstantiableParams:
    p = super().Task()
    p.train.learner.lr_schedule.model_dim = self.DIM
    return p
