"""Experiments on scikit-learn's handwritten digits: 8 x 8 pixels, 10 classes.

They need no download and run on a CPU in minutes.
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
from tasks.image import amoebanet, digits_input


@registry.RegisterSingleTaskModel
class AmoebaNetDigits(base_model_params.SplitModelParams):
  """AmoebaNet-D (3, 24) on handwritten digits: 99% in about two minutes.

  The recipe is that of AmoebaNet on ImageNet, made short: RMSProp, a linear
  warm-up, label smoothing, L2, dropout. Batch norm's moments follow quickly,
  since there are only a few hundred steps.
  """

  BATCH_SIZE = 64
  NUM_MICRO_BATCHES = 8
  MAX_STEPS = 600
  WARMUP_STEPS = 20

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return digits_input.DigitsInput.Params().Set(
      split=split, batch_size=self.BATCH_SIZE
    )

  def Task(self) -> hyperparams.InstantiableParams:
    p = base_task.BaseTask.Params().Set(name='digits')
    p.net.Set(
      cells=amoebanet.AmoebaNetCells(
        num_layers=3,
        num_filters=24,
        image_size=digits_input.IMAGE_SIZE,
        num_classes=digits_input.NUM_CLASSES,
        small_images=True,
        input_channels=1,
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
