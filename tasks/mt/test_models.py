"""A small registered translation model that tests run by name."""

from __future__ import annotations

from lingvo_gpipe import base_model_params, registry
from lingvo_gpipe.train import optimizers, schedules
from tasks.mt import transformer, translation_input, translation_task

NAME = 'tasks.mt.test_models.Tiny'
VOCAB_SIZE = 500


@registry.RegisterSingleTaskModel
class Tiny(base_model_params.SingleTaskModelParams):
  """1 + 1 layers; learns 64 pairs by heart in 150 steps."""

  VOCAB_SIZE = VOCAB_SIZE

  def Train(self):
    return self._Input('train').Set(training=True)

  def _Input(self, split):
    return translation_input.TranslationInput.Params().Set(
      split=split,
      vocab_size=self.VOCAB_SIZE,
      batch_tokens=1024,
      batch_multiple=2,
      bucket_lengths=[64],
      packing=True,
    )

  def Task(self):
    network = transformer.Transformer(
      num_layers=1,
      hidden_dim=256,
      num_heads=4,
      vocab_size=self.VOCAB_SIZE,
      dim=64,
      head_dim=None,
      tied='all',
      keep_prob=1.0,
      label_smoothing=0.0,
      scale_feed_forward=False,
      packed=True,
    )
    p = translation_task.Params(network, num_partitions=2, num_micro_batches=2)
    p.decoder.beam_size = 2
    p.train.Set(max_steps=150, log_interval_steps=50)
    p.train.save_interval_steps = 50
    p.train.learner.Set(
      optimizer=optimizers.Adam.Params().Set(beta2=0.98),
      learning_rate=0.5,
      lr_schedule=schedules.Transformer.Params().Set(
        model_dim=64, warmup_steps=50
      ),
    )
    return p
