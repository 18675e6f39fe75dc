"""Experiments on emoji: coloured pictures of 32 x 32 pixels, 9 classes.

They need no download beyond a Python package and run on a CPU in minutes.
"""

from __future__ import annotations

from lingvo_gpipe import (
  base_model_params,
  base_task,
  hyperparams,
  registry,
)
from lingvo_gpipe.layers import norm
from lingvo_gpipe.train import optimizers, schedules
from tasks.image import amoebanet, emoji_input


@registry.RegisterSingleTaskModel
class AmoebaNetEmoji(base_model_params.SplitModelParams):
  """AmoebaNet-D (3, 16) on the groups of emoji: 0.64 on test.

  Logistic regression reaches 0.43, the nearest neighbour 0.46; see
  docs/images_small.md.
  """

  IMAGE_SIZE = 32
  NUM_FILTERS = 16
  BATCH_SIZE = 32
  NUM_MICRO_BATCHES = 4
  MAX_STEPS = 800
  WARMUP_STEPS = 50

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return emoji_input.EmojiInput.Params().Set(
      split=split, image_size=self.IMAGE_SIZE, batch_size=self.BATCH_SIZE
    )

  def Task(self) -> hyperparams.InstantiableParams:
    p = base_task.BaseTask.Params().Set(name='emoji')
    p.net.Set(
      cells=amoebanet.AmoebaNetCells(
        num_layers=3,
        num_filters=self.NUM_FILTERS,
        image_size=self.IMAGE_SIZE,
        num_classes=emoji_input.NUM_CLASSES,
        small_images=True,
        stem_filters=16,
        keep_prob=0.8,
        label_smoothing=0.1,
        batch_norm=norm.BatchNorm.Params().Set(decay=0.9),
      ),
      num_micro_batches=self.NUM_MICRO_BATCHES,
    )
    p.train.Set(max_steps=self.MAX_STEPS, save_interval_steps=100)
    p.eval.interval_steps = 200
    p.train.learner.Set(
      optimizer=optimizers.RMSProp.Params().Set(
        epsilon=1e-3, initial_mean_square=0.0
      ),
      learning_rate=0.01,
      lr_schedule=schedules.LinearRampup.Params().Set(
        warmup_steps=self.WARMUP_STEPS,
        schedule=schedules.Cosine.Params(),
      ),
      l2_regularizer_weight=1e-4,
    )
    return p
