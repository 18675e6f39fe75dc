"""Translation of the web framework Django's texts, between English and 94
languages: what a processor trains in minutes, without any download.

The texts are few, 56,000 pairs, and short. Small shows in ten minutes that all
works; Base takes an hour or two and learns to translate what is like the texts
that it has seen. docs/translation.md has scores, beside those of copying the
source and of a translation memory.
"""

from __future__ import annotations

from lingvo_gpipe import base_model_params, hyperparams, registry
from lingvo_gpipe.train import optimizers, schedules
from tasks.mt import django_input, transformer, translation_task


class Django(base_model_params.SplitModelParams):
  """The base class: data and recipe.

  Attributes of subclasses:
    NUM_LAYERS: of the encoder, and as many of the decoder.
    DIM: width of the stream.
    HIDDEN_DIM: of feed-forward networks.
    NUM_HEADS: of attention.
    KEEP_PROB: of the dropout of embeddings and layers.
    BATCH_TOKENS: of a mini-batch, on each side.
    VOCAB_SIZE: ids of the vocabulary.
    MAX_STEPS: of training.
    WARMUP_STEPS: of the learning rate.
    TEST_PAIRS: of each direction that are evaluated and translated; 0: all.
  """

  VOCAB_SIZE = 8000
  NUM_LAYERS = 3
  DIM = 256
  HIDDEN_DIM = 1024
  NUM_HEADS = 4
  KEEP_PROB = 0.8
  BATCH_TOKENS = 4096
  MAX_STEPS = 3000
  WARMUP_STEPS = 500
  TEST_PAIRS = 0

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return django_input.DjangoInput.Params().Set(
      split=split,
      vocab_size=self.VOCAB_SIZE,
      batch_tokens=self.BATCH_TOKENS,
      batch_multiple=8,
      # Texts are short, so that most of their rows would be padding: training
      # has several of them in rows of the last length.
      bucket_lengths=[16, 32, 64, 128],
      packing=True,
      max_examples_per_group={'dev': 10, 'test': self.TEST_PAIRS}.get(split, 0),
    )

  def Task(self) -> hyperparams.InstantiableParams:
    network = transformer.Transformer(
      num_layers=self.NUM_LAYERS,
      hidden_dim=self.HIDDEN_DIM,
      num_heads=self.NUM_HEADS,
      vocab_size=self.VOCAB_SIZE,
      dim=self.DIM,
      head_dim=None,
      tied='all',
      keep_prob=self.KEEP_PROB,
      # Only deep networks need these measures against divergence.
      logits_abs_max=None,
      scale_feed_forward=False,
      packed=True,
    )
    p = translation_task.Params(network, num_partitions=2, num_micro_batches=8)
    p.net.rematerialize = 'none'
    p.train.Set(max_steps=self.MAX_STEPS, save_interval_steps=250)
    p.eval.interval_steps = 250
    p.train.learner.Set(
      optimizer=optimizers.Adam.Params().Set(beta2=0.98, epsilon=1e-9),
      learning_rate=1.0,
      lr_schedule=schedules.Transformer.Params().Set(
        model_dim=self.DIM, warmup_steps=self.WARMUP_STEPS
      ),
      clip_gradient_norm_to_value=1.0,
    )
    return p


@registry.RegisterSingleTaskModel
class Small(Django):
  """2 + 2 layers of width 128 on two partitions: ten minutes on two cores."""

  NUM_LAYERS = 2
  DIM = 128
  HIDDEN_DIM = 512
  KEEP_PROB = 0.9
  VOCAB_SIZE = 4000
  MAX_STEPS = 600
  WARMUP_STEPS = 200
  TEST_PAIRS = 10


@registry.RegisterSingleTaskModel
class Base(Django):
  """3 + 3 layers of width 256 on two partitions: an hour or two."""
