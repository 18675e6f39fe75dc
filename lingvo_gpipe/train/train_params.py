"""The params `train` and `eval` of a task: how long, how often, with what."""

from __future__ import annotations

from lingvo_gpipe import hyperparams
from lingvo_gpipe.train import ema, init_from_checkpoint, learner


def TrainParams() -> hyperparams.Params:
  """Params of training."""
  p = hyperparams.Params()
  p.Define('learner', learner.Learner.Params(), 'Gradients to updates.')
  p.Define(
    'ema',
    ema.ExponentialMovingAverage.Params(),
    'Averages of the weights, which evaluation then uses.',
  )
  p.Define(
    'init_from',
    init_from_checkpoint.InitFromCheckpoint.Params(),
    'Weights that the run starts from, instead of random ones.',
  )
  p.Define('max_steps', 1000, 'Steps of the whole run (--max_steps).')
  p.Define(
    'log_interval_steps', 20, 'A line of progress comes every so many steps.'
  )
  p.Define(
    'summary_interval_steps',
    20,
    'TensorBoard gets a point every so many steps; 0: none.',
  )
  p.Define(
    'save_interval_steps',
    0,
    'A checkpoint is written every so many steps, and at the end; 0: only by '
    'time.',
  )
  p.Define(
    'save_interval_seconds',
    600.0,
    'A checkpoint is written after so many seconds; 0: only by steps.',
  )
  p.Define(
    'save_max_to_keep',
    3,
    'How many of the newest checkpoints stay (--saver_max_to_keep).',
  )
  p.Define(
    'max_nonfinite_steps',
    20,
    'Training gives up after so many steps in a row whose gradients are not '
    'finite. Such steps change nothing.',
  )
  return p


def EvalParams() -> hyperparams.Params:
  """Params of the evaluations during training."""
  p = hyperparams.Params()
  p.Define(
    'interval_steps',
    0,
    'The dev data is evaluated every so many training steps; 0: at the end '
    'only.',
  )
  p.Define(
    'best_metric',
    None,
    'The metric of the dev data by which the best checkpoint is kept besides '
    'the newest ones: higher is better, but lower where its name begins with '
    '"loss", or the param with "-", as in "-perplexity". None: accuracy, or '
    'loss where there is none. "": no checkpoint is kept for that.',
  )
  return p
