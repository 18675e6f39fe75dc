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
    'save_keep_every_steps',
    0,
    'Checkpoints are also written at all multiples of so many steps, and these '
    'are never deleted; 0: none (--saver_keep_every_steps).',
  )
  p.Define(
    'save_in_background',
    True,
    'Training goes on while a checkpoint is written. For that time its values '
    'take memory once more, on each device those of its variables. False: '
    'training waits.',
  )
  p.Define(
    'verify_checkpoints',
    True,
    'All files of a checkpoint are compared with their checksums before it is '
    'restored. False: only their sizes; for files that take too long to read '
    'twice.',
  )
  p.Define(
    'nonfinite',
    'skip',
    'What is done about a step whose gradients are not finite, which never '
    'changes anything: "skip" goes on to the next one, "stop" ends training.',
  )
  p.Define(
    'max_nonfinite_steps',
    20,
    'With nonfinite="skip", training gives up after so many such steps in a '
    'row.',
  )
  return p


def Check(train: hyperparams.Params, evaluation: hyperparams.Params) -> None:
  """Raises ValueError for values that no run can have.

  Args:
    train: of TrainParams.
    evaluation: of EvalParams.
  """
  if train.nonfinite not in ('skip', 'stop'):
    raise ValueError(
      f'train.nonfinite={train.nonfinite!r} is neither "skip" nor "stop"'
    )
  for params, prefix, name in (
    (train, 'train', 'save_keep_every_steps'),
    (evaluation, 'eval', 'early_stop_evals'),
  ):
    if params.Get(name) < 0:
      raise ValueError(f'{prefix}.{name}={params.Get(name)} must be 0 or more')
  if evaluation.early_stop_evals and not evaluation.interval_steps:
    raise ValueError(
      f'eval.early_stop_evals={evaluation.early_stop_evals} counts evaluations '
      'during training, of which there are none: set eval.interval_steps'
    )
  if evaluation.early_stop_evals and evaluation.best_metric == '':
    raise ValueError(
      f'eval.early_stop_evals={evaluation.early_stop_evals} goes by '
      'eval.best_metric, which is "": name a metric there, or None'
    )


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
  p.Define(
    'early_stop_evals',
    0,
    'Training ends after so many evaluations in a row, of those during '
    'training, without a new best of best_metric; 0: it does not.',
  )
  return p
