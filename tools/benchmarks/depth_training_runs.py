"""Short trainings of deep, narrow models, with measures or without.

Huang et al. (arXiv 1811.06965, section 5) found deep Transformers to diverge,
and helped by two measures: feed-forward networks start 1/L times as large, and
logits are clipped. Others are common. Here each is switched on or off.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe import (
  base_input,
  base_task,
  hyperparams,
  nested_map,
  user_error,
  weights,
)
from lingvo_gpipe.train import adafactor, optimizers, schedules
from tools.benchmarks import depth_training_models as models

# {name: what it does}; the first two are the paper's.
MEASURES = {
  'init': 'feed-forward networks start 1/L times as large',
  'logits': 'logits are clipped',
  'norm': "all gradients' norm is clipped",
  'warmup': 'a linear warm-up for a quarter of the steps, then the inverse '
  'square root of the step, with the learning rate as its peak',
  'skip': 'steps whose gradients are not finite change nothing',
}
ALL = '+'.join(MEASURES)
OPTIMIZERS = {'adafactor': adafactor.Adafactor, 'adam': optimizers.Adam}


@dataclasses.dataclass(frozen=True)
class Options:
  """What all runs have in common.

  Attributes:
    architecture: what is trained.
    steps: of training.
    batch_size: rows of a mini-batch.
    sequence_length: tokens of a row.
    optimizer: one of OPTIMIZERS.
    learning_rate: constant, or the peak with 'warmup'.
    logits_abs_max: of 'logits'.
    gradient_norm: of 'norm'.
    use_norm: whether a norm stands between the last block and the softmax.
  """

  architecture: models.Architecture
  steps: int
  batch_size: int
  sequence_length: int
  optimizer: str
  learning_rate: float
  logits_abs_max: float
  gradient_norm: float
  use_norm: bool


def ParseMeasures(text: str) -> frozenset[str]:
  """Reads 'none', 'all' or names with '+' between them.

  Args:
    text: of a flag.

  Returns:
    Names of MEASURES.

  Raises:
    UserError: for other names.
  """
  names = {'none': [], 'all': list(MEASURES)}.get(text, text.split('+'))
  unknown = [name for name in names if name not in MEASURES]
  if unknown:
    raise user_error.UserError(
      f'--measures: {unknown[0]!r} is none of {", ".join(MEASURES)}; join some '
      "by '+', or write 'none' or 'all'"
    )
  return frozenset(names)


def Params(
  shape: models.Shape, measures: frozenset[str], options: Options, seed: int
) -> hyperparams.InstantiableParams:
  """The task of a run."""
  architecture = options.architecture
  p = base_task.BaseTask.Params().Set(name=architecture.NAME, random_seed=seed)
  cells = architecture.Cells(
    shape,
    use_norm=options.use_norm,
    scale_feed_forward='init' in measures,
    logits_abs_max=options.logits_abs_max if 'logits' in measures else None,
  )
  p.net.Set(cells=cells, num_micro_batches=1, rematerialize='none')
  learner = p.train.learner.Set(
    optimizer=OPTIMIZERS[options.optimizer].Params(),
    learning_rate=options.learning_rate,
    skip_nonfinite='skip' in measures,
  )
  if 'norm' in measures:
    learner.clip_gradient_norm_to_value = options.gradient_norm
  if 'warmup' in measures:
    warmup = max(1, options.steps // 4)
    learner.learning_rate *= math.sqrt(warmup)  # The schedule's peak is less.
    learner.lr_schedule = schedules.Transformer.Params().Set(
      warmup_steps=warmup
    )
  return p


class Runner:
  """Runs trainings one after the other; those of one graph share it.

  To trace a deep model takes longer than to train it for some steps. Seeds and
  the measure 'init' change initial values only.
  """

  def __init__(self, options: Options):
    self._options = options
    self._tasks: dict[Any, tuple[base_task.BaseTask, Any]] = {}
    self._batches: dict[int, list[nested_map.NestedMap]] = {}

  def Run(
    self, shape: models.Shape, measures: frozenset[str], seed: int
  ) -> dict[str, Any]:
    """Trains a model from its start.

    Args:
      shape: of the model.
      measures: names of MEASURES.
      seed: of initial values and of the order of the text.

    Returns:
      loss: mean over the last tenth of the steps, nats per token; None where
        one of them is not finite.
      worst: the largest loss of any step that is finite, None if none is.
      non_finite: steps whose loss or gradients were not finite.
      skipped: steps that changed nothing.
      parameters: of the model.
      losses: of all steps, None where they are not finite.
    """
    params = Params(shape, measures, self._options, seed)
    task, step_function = self._Task(shape, measures - {'init'}, params)
    specs = _Reset(task, params)
    losses, non_finite = [], 0
    for step, batch in enumerate(self._Batches(seed)):
      outputs = step_function(batch, tf.constant(step, tf.int64))
      loss, norm = float(outputs.loss), float(outputs.grad_norm)
      losses.append(loss if math.isfinite(loss) else None)
      non_finite += not (math.isfinite(loss) and math.isfinite(norm))
    last = losses[-max(1, len(losses) // 10) :]
    finite = [loss for loss in losses if loss is not None]
    return {
      'loss': None if None in last else float(np.mean(last)),
      'worst': max(finite, default=None),
      'non_finite': non_finite,
      'skipped': int(task.learner.slots['learner/num_skipped']),
      'parameters': sum(spec.size for spec in specs),
      'losses': losses,
    }

  def _Task(
    self,
    shape: models.Shape,
    measures: frozenset[str],
    params: hyperparams.InstantiableParams,
  ) -> tuple[base_task.BaseTask, Any]:
    """A task with variables, and its step as a tf.function."""
    key = (shape, measures)
    if key not in self._tasks:
      with user_error.Expected(ValueError):
        task = params.Instantiate()
      task.Plan(self._Input(0).BatchSpec())
      task.InstantiateVariables()
      step_function = tf.function(task.TrainStep, autograph=False)
      self._tasks[key] = task, step_function
    return self._tasks[key]

  def _Input(self, seed: int) -> base_input.BaseInput:
    options = self._options
    return options.architecture.Input(
      batch_size=options.batch_size,
      sequence_length=options.sequence_length,
      seed=seed,
    )

  def _Batches(self, seed: int) -> list[nested_map.NestedMap]:
    if seed not in self._batches:
      dataset = self._Input(seed).Dataset()
      self._batches[seed] = [
        nested_map.NestedMap(batch)
        for batch in dataset.take(self._options.steps)
      ]
    return self._batches[seed]


def _Reset(
  task: base_task.BaseTask, params: hyperparams.InstantiableParams
) -> list[weights.VariableSpec]:
  """Sets all variables to what a task of other initial values starts from.

  Args:
    task: with variables; changed.
    params: of the other task.

  Returns:
    The specs of its weights.
  """
  other = params.Instantiate()
  specs = tf.nest.flatten(other.VariableSpecs())
  start = {spec.path: spec for spec in specs} | other.StateSpecs()
  for path, variable in task.variables_for_checkpoint.items():
    if path in start:
      variable.assign(weights.InitialValue(start[path]))
    else:  # A counter of the learner.
      variable.assign(tf.zeros_like(variable))
  return specs
