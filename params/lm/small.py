"""Language models for processors: bytes of Python's own standard library.

They need no download.
"""

from __future__ import annotations

from lingvo_gpipe import (
  base_model_params,
  base_task,
  hyperparams,
  registry,
)
from lingvo_gpipe.train import optimizers, schedules
from tasks.lm import token_files, token_input, transformer_lm


@registry.RegisterSingleTaskModel
class TransformerSmall(base_model_params.SplitModelParams):
  """6 blocks of width 128 on the bytes of Python's own sources; minutes."""

  NUM_LAYERS = 6
  DIM = 128
  BATCH_SIZE = 32
  SEQUENCE_LENGTH = 128
  NUM_MICRO_BATCHES = 8
  MAX_STEPS = 200
  WARMUP_STEPS = 20
  LEARNING_RATE = 3e-3

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    return token_input.TokenInput.Params().Set(
      data_dir=token_files.PYTHON_SOURCES,
      split=split,
      batch_size=self.BATCH_SIZE,
      sequence_length=self.SEQUENCE_LENGTH,
    )

  def Task(self) -> hyperparams.InstantiableParams:
    p = base_task.BaseTask.Params().Set(name='lm', loss_unit='tokens')
    p.net.Set(
      cells=transformer_lm.TransformerLm(
        num_layers=self.NUM_LAYERS,
        dim=self.DIM,
        hidden_dim=4 * self.DIM,
        num_heads=4,
        vocab_size=token_files.TEXT_VOCAB_SIZE,
        tied=True,
      ).Cells(),
      num_micro_batches=self.NUM_MICRO_BATCHES,
    )
    p.train.Set(max_steps=self.MAX_STEPS, save_interval_steps=100)
    p.eval.interval_steps = 100
    p.train.learner.Set(
      optimizer=optimizers.Adam.Params().Set(beta2=0.98),
      learning_rate=self.LEARNING_RATE,
      lr_schedule=schedules.LinearRampup.Params().Set(
        warmup_steps=self.WARMUP_STEPS, schedule=schedules.Cosine.Params()
      ),
      clip_gradient_norm_to_value=1.0,
    )
    return p
