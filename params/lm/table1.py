"""The GPipe paper's Transformers of Tables 1 to 3: what fits, how fast it is.

Huang et al. (arXiv 1811.06965): Transformer-L of width 2048, hidden layers of
8192, 32 heads, 32,000 ids, on 32 sequences of 1024 tokens; L grows with K, the
number of partitions. RMSProp makes 12 bytes per parameter. The paper asks
whether they train a step, not how well: the recipe of training is ours, with
its measures for deep models (section 5). They take any text or ids by
--data_dir (docs/language_models.md).
"""

from __future__ import annotations

from lingvo_gpipe import (
  base_model_params,
  base_task,
  hyperparams,
  registry,
)
from lingvo_gpipe.train import optimizers, schedules
from tasks.lm import token_input, transformer_lm


class TransformerL(base_model_params.SplitModelParams):
  """The base class.

  Attributes of subclasses:
    NUM_LAYERS: L.
    NUM_PARTITIONS: K.
    NUM_MICRO_BATCHES: M.
    REMATERIALIZE: what is computed again.
    DATA_DIR: the data, until --data_dir is given.
  """

  NUM_LAYERS = 3
  NUM_PARTITIONS = 1
  NUM_MICRO_BATCHES = 32
  REMATERIALIZE = 'partition'
  DATA_DIR = ''

  DIM = 2048
  HIDDEN_DIM = 8192
  NUM_HEADS = 32
  VOCAB_SIZE = 32_000
  SEQUENCE_LENGTH = 1024
  BATCH_SIZE = 32

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return token_input.TokenInput.Params().Set(
      data_dir=self.DATA_DIR,
      split=split,
      batch_size=self.BATCH_SIZE,
      sequence_length=self.SEQUENCE_LENGTH,
      vocab_size=self.VOCAB_SIZE,
    )

  def Task(self) -> hyperparams.InstantiableParams:
    p = base_task.BaseTask.Params().Set(name='lm', loss_unit='tokens')
    p.net.Set(
      cells=transformer_lm.TransformerLm(
        num_layers=self.NUM_LAYERS,
        dim=self.DIM,
        hidden_dim=self.HIDDEN_DIM,
        num_heads=self.NUM_HEADS,
        vocab_size=self.VOCAB_SIZE,
        use_norm=False,
        scale_feed_forward=True,
        logits_abs_max=30.0,
      ).Cells(),
      num_partitions=self.NUM_PARTITIONS,
      num_micro_batches=self.NUM_MICRO_BATCHES,
      rematerialize=self.REMATERIALIZE,
    )
    p.train.max_steps = 100_000
    p.eval.interval_steps = 5000
    p.train.learner.Set(
      optimizer=optimizers.RMSProp.Params().Set(
        epsilon=1e-8, initial_mean_square=0.0
      ),
      learning_rate=1e-2,
      lr_schedule=schedules.Transformer.Params().Set(warmup_steps=4000),
      clip_gradient_norm_to_value=1.0,
    )
    return p


@registry.RegisterSingleTaskModel
class TransformerL3(TransformerL):
  """282.2M parameters, Naive-1: no micro-batches, nothing computed again."""

  NUM_MICRO_BATCHES = 1
  REMATERIALIZE = 'none'


@registry.RegisterSingleTaskModel
class TransformerL13(TransformerL):
  """785.8M parameters, Pipeline-1: micro-batches on one device."""

  NUM_LAYERS = 13


@registry.RegisterSingleTaskModel
class TransformerL24(TransformerL):
  """1.3B parameters, for the throughput without fast links of Table 3."""

  NUM_LAYERS = 24
  NUM_PARTITIONS = 2


@registry.RegisterSingleTaskModel
class TransformerL48(TransformerL):
  """2.5B parameters, for the throughput of Table 2: 2, 4 and 8 partitions."""

  NUM_LAYERS = 48
  NUM_PARTITIONS = 2


@registry.RegisterSingleTaskModel
class TransformerL103(TransformerL):
  """5.3B parameters on 8 devices."""

  NUM_LAYERS = 103
  NUM_PARTITIONS = 8


@registry.RegisterSingleTaskModel
class TransformerL415(TransformerL):
  """21.0B parameters on 32 devices."""

  NUM_LAYERS = 415
  NUM_PARTITIONS = 32


@registry.RegisterSingleTaskModel
class TransformerL1663(TransformerL):
  """83.9B parameters on 128 devices."""

  NUM_LAYERS = 1663
  NUM_PARTITIONS = 128
