"""The trainer's flags.

Defined apart from what they start, so that --help needs no TensorFlow. The rest
of the program sees an `Options`, never the global flags.
"""

from __future__ import annotations

import dataclasses

from absl import flags

from lingvo_gpipe import user_error

MODES = ('sync', 'inspect_model', 'inspect_params', 'list_models')
JOBS = ('trainer', 'evaler')
DEVICE_KINDS = ('cpu', 'gpu', 'tpu')

_MODEL = flags.DEFINE_string(
  'model',
  None,
  'The registered model, such as image.digits.AmoebaNetDigits; '
  '--mode=list_models lists them. Its module is imported by this name.',
)
_LOGDIR = flags.DEFINE_string(
  'logdir',
  None,
  'Where checkpoints, TensorBoard summaries and results go, and where a run '
  'that was stopped goes on from. Needed by --mode=sync; inspect_model writes '
  'model_analysis.json there if it is given; other modes write nothing.',
)
_MODE = flags.DEFINE_enum(
  'mode',
  'sync',
  MODES,
  'sync: run the --job. inspect_model: print variables, partitions and the '
  'number of parameters, without taking memory for them. inspect_params: print '
  'all params of the model. list_models: print the names of all models.',
)
_JOB = flags.DEFINE_enum(
  'job',
  'trainer',
  JOBS,
  'What --mode=sync does. trainer: train, then evaluate. evaler: evaluate the '
  'newest checkpoint of --logdir once.',
)
_RUN_LOCALLY = flags.DEFINE_enum(
  'run_locally',
  'cpu',
  DEVICE_KINDS,
  'Kind of the devices of this machine to run on. cpu shows the processor as '
  'one logical device for each partition.',
)
_WORKER_SPLIT_SIZE = flags.DEFINE_integer(
  'worker_split_size',
  0,
  'K, the number of partitions that the cells are cut into, each on a device '
  'of its own. 0: what the model says.',
  lower_bound=0,
)
_NUM_MICRO_BATCHES = flags.DEFINE_integer(
  'num_micro_batches',
  0,
  'M, the number of micro-batches that a mini-batch is split into; must divide '
  'it. More make the pipeline idle less: (K-1)/(M+K-1) of the time. 0: what '
  'the model says.',
  lower_bound=0,
)
_MODEL_PARAMS_OVERRIDE = flags.DEFINE_string(
  'model_params_override',
  '',
  'Changes to the params of the model, "path=value" separated by ";": '
  '"train.learner.learning_rate=0.1;input.batch_size=32". '
  '--mode=inspect_params shows the paths.',
)
_IMPORT = flags.DEFINE_list(
  'import',
  [],
  'Modules of your own to import first, by dotted name and separated by '
  'commas; the models they register can then be named by --model.',
)
_MAX_STEPS = flags.DEFINE_integer(
  'max_steps',
  0,
  'Steps to train, counted from the start of the run. 0: what the model says '
  '(train.max_steps).',
  lower_bound=0,
)
_SAVER_MAX_TO_KEEP = flags.DEFINE_integer(
  'saver_max_to_keep',
  0,
  'How many of the newest checkpoints stay. 0: what the model says '
  '(train.save_max_to_keep).',
  lower_bound=0,
)
_EVAL_AT_END = flags.DEFINE_boolean(
  'eval_at_end',
  True,
  'Whether the trainer evaluates the dev and test data after the last step.',
)


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of one run; see their help texts.

  Attributes:
    model: name of the model.
    logdir: directory; '' for none.
    mode: one of MODES.
    job: one of JOBS.
    run_locally: one of DEVICE_KINDS.
    num_partitions: K; 0 leaves it to the model.
    num_micro_batches: M; 0 leaves it to the model.
    model_params_override: text.
    imports: modules to import first.
    max_steps: 0 leaves it to the model.
    save_max_to_keep: 0 leaves it to the model.
    eval_at_end: whether training ends with an evaluation.
  """

  model: str = ''
  logdir: str = ''
  mode: str = 'sync'
  job: str = 'trainer'
  run_locally: str = 'cpu'
  num_partitions: int = 0
  num_micro_batches: int = 0
  model_params_override: str = ''
  imports: tuple[str, ...] = ()
  max_steps: int = 0
  save_max_to_keep: int = 0
  eval_at_end: bool = True

  def Check(self) -> None:
    """Raises UserError where a flag is missing that the mode needs."""
    if self.mode != 'list_models' and not self.model:
      raise user_error.UserError(
        '--model is missing: name a registered model, such as '
        '--model=image.digits.AmoebaNetDigits; --mode=list_models lists them'
      )
    if self.mode == 'sync' and not self.logdir:
      raise user_error.UserError(
        '--logdir is missing: name a directory for checkpoints, summaries and '
        'results, such as --logdir=/tmp/digits'
      )


def FromFlags() -> Options:
  """The parsed flags.

  Returns:
    The Options.

  Raises:
    UserError: where a flag is missing that the mode needs.
  """
  options = Options(
    model=_MODEL.value or '',
    logdir=_LOGDIR.value or '',
    mode=_MODE.value,
    job=_JOB.value,
    run_locally=_RUN_LOCALLY.value,
    num_partitions=_WORKER_SPLIT_SIZE.value,
    num_micro_batches=_NUM_MICRO_BATCHES.value,
    model_params_override=_MODEL_PARAMS_OVERRIDE.value,
    imports=tuple(_IMPORT.value),
    max_steps=_MAX_STEPS.value,
    save_max_to_keep=_SAVER_MAX_TO_KEEP.value,
    eval_at_end=_EVAL_AT_END.value,
  )
  options.Check()
  return options
