"""The trainer's flags.

Defined apart from what they start, so that --help needs no TensorFlow. The rest
of the program sees an `Options`, never the global flags.
"""

from __future__ import annotations

import dataclasses

from absl import flags

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  cluster_flags,
  eval_flags,
  job_names,
  operation_flags,
)
from lingvo_gpipe.workers import process_memory

flags.adopt_module_key_flags(cluster_flags)
flags.adopt_module_key_flags(eval_flags)
flags.adopt_module_key_flags(operation_flags)

MODES = ('sync', 'inspect_model', 'inspect_params', 'list_models', 'shell')
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
  'all params of the model. list_models: print the names of all models. shell: '
  'a Python prompt with the model, its data and its newest checkpoint.',
)
_JOB = flags.DEFINE_string(
  'job',
  None,
  'What --mode=sync does. trainer (default, unless TF_CONFIG gives this '
  'process another task): train, then evaluate and decode. evaler: evaluate '
  'the checkpoints of --logdir as a trainer writes them. decoder: decode with '
  'them, such as to translate. Several of these, separated by commas, are '
  'done by one process: evaler,decoder works on each checkpoint for both; with '
  'trainer, such as trainer,evaler, training pauses for that after each '
  'checkpoint. worker: compute for a trainer, evaler or decoder as one of '
  '--worker_hosts; it needs neither --model nor --logdir.',
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
  'of its own. 0: as many as there are --local_workers, or else what the model '
  'says.',
  lower_bound=0,
)
_WORKER_REPLICAS = flags.DEFINE_integer(
  'worker_replicas',
  0,
  'R, the number of replicas of the pipeline that share each mini-batch, and '
  'sum their gradients. The run takes R x K devices. 0: what the model says.',
  lower_bound=0,
)
_LOCAL_WORKERS = flags.DEFINE_integer(
  'local_workers',
  0,
  'Run on so many processes of this machine, each on a processor core of its '
  'own, instead of logical devices: partitions then work at the same time. One '
  'partition of a replica each, so --worker_split_size need not be given, or '
  'must be this number divided by --worker_replicas. 0: no such processes.',
  lower_bound=0,
)
_TIMELINE = flags.DEFINE_boolean(
  'timeline',
  False,
  'Draw one of the first steps: which device ran which pass of which '
  'micro-batch when. timeline.png in --logdir is a picture, '
  'timeline_trace.json opens in ui.perfetto.dev.',
)
_WORKER_MEMORY = flags.DEFINE_string(
  'worker_memory',
  '',
  'Resident memory that each of --local_workers may have, such as 1.5G or '
  '800M; without doing anything it has 0.4G. The run ends when one takes more. '
  'Or that a process of --job=worker may have, which then starts anew. '
  'Empty: no limit.',
)
_NUM_MICRO_BATCHES = flags.DEFINE_integer(
  'num_micro_batches',
  0,
  'M, the number of micro-batches that a mini-batch is split into; must divide '
  'it. More make the pipeline idle less: (K-1)/(M+K-1) of the time. 0: what '
  'the model says.',
  lower_bound=0,
)
_PROFILE_CELLS = flags.DEFINE_boolean(
  'profile_cells',
  False,
  'Cut the cells by measured times: before the start each kind of cell runs '
  'alone for some seconds at most. Else by counted FLOPs.',
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
_DATA_DIR = flags.DEFINE_string(
  'data_dir',
  '',
  'Where the data is: sets every param called data_dir of the inputs.',
)
_DOWNLOAD = flags.DEFINE_boolean(
  'download',
  False,
  'Let inputs download data that is missing: sets every param called download '
  'of the inputs. Else nothing is downloaded.',
)
_INIT_CHECKPOINT = flags.DEFINE_string(
  'init_checkpoint',
  '',
  'Start from the weights of this checkpoint, or of the newest one of this log '
  'directory, where the run has none of its own (train.init_from.checkpoint; '
  'train.init_from also says which variables).',
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
_SAVER_KEEP_EVERY_STEPS = flags.DEFINE_integer(
  'saver_keep_every_steps',
  0,
  'Checkpoints of all multiples of so many steps are written and stay. '
  '0: what the model says (train.save_keep_every_steps).',
  lower_bound=0,
)
_EVAL_AT_END = flags.DEFINE_boolean(
  'eval_at_end',
  True,
  'Whether the trainer evaluates the dev and test data after the last step.',
)
_DECODE_AT_END = flags.DEFINE_boolean(
  'decode_at_end',
  True,
  'Whether the trainer decodes after the last step, too, where the model has a '
  'decoder: translates the test data, for example.',
)


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of one run; see their help texts.

  Attributes:
    model: name of the model.
    logdir: directory; '' for none.
    mode: one of MODES.
    job: one of job_names.JOBS, or several with commas.
    run_locally: one of DEVICE_KINDS.
    num_partitions: K; 0 leaves it to local_workers, or to the model.
    num_replicas: R; 0 leaves it to the model.
    local_workers: number of worker processes; 0: none.
    worker_memory: limit of each, as text; '' for none.
    timeline: whether to draw a step.
    num_micro_batches: M; 0 leaves it to the model.
    profile_cells: whether cuts go by measured times; False leaves it to the
      model.
    model_params_override: text.
    imports: modules to import first.
    data_dir: '' leaves it to the model.
    download: whether inputs may; False leaves it to the model.
    init_checkpoint: '' leaves it to the model.
    max_steps: 0 leaves it to the model.
    save_max_to_keep: 0 leaves it to the model.
    save_keep_every_steps: 0 leaves it to the model.
    eval_at_end: whether training ends with an evaluation.
    decode_at_end: whether it then decodes.
    evaluation: what is evaluated.
    cluster: workers that are not started by this process.
    operation: what is shown of a run.
  """

  model: str = ''
  logdir: str = ''
  mode: str = 'sync'
  job: str = 'trainer'
  run_locally: str = 'cpu'
  num_partitions: int = 0
  num_replicas: int = 0
  local_workers: int = 0
  worker_memory: str = ''
  timeline: bool = False
  num_micro_batches: int = 0
  profile_cells: bool = False
  model_params_override: str = ''
  imports: tuple[str, ...] = ()
  data_dir: str = ''
  download: bool = False
  init_checkpoint: str = ''
  max_steps: int = 0
  save_max_to_keep: int = 0
  save_keep_every_steps: int = 0
  eval_at_end: bool = True
  decode_at_end: bool = True
  evaluation: eval_flags.EvalOptions = eval_flags.EvalOptions()
  cluster: cluster_flags.ClusterOptions = cluster_flags.ClusterOptions()
  operation: operation_flags.OperationOptions = (
    operation_flags.OperationOptions()
  )

  @property
  def jobs(self) -> tuple[str, ...]:
    """The names in `job`."""
    return job_names.Parse(self.job)

  @property
  def memory_limit(self) -> int | None:
    """Bytes that each worker may have; None for no limit."""
    if not self.worker_memory:
      return None
    with user_error.Expected(ValueError, prefix='--worker_memory: '):
      return process_memory.ParseSize(self.worker_memory)

  @property
  def num_worker_devices(self) -> int:
    """How many devices all workers have; 0 without workers."""
    return self.local_workers or self.cluster.num_devices

  def Check(self) -> None:
    """Raises UserError for missing flags and flags that do not go together."""
    job_names.Parse(self.job)
    self.cluster.CheckTpu(self.job, self.run_locally, self.local_workers)
    self._CheckWorkers()
    self.cluster.Check(self.job)
    self.operation.ProfiledSteps()
    if self.job == 'worker' and self.mode == 'sync':
      return
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
    if self.mode == 'sync':
      self.evaluation.Check(self.jobs, self.eval_at_end)

  def _CheckWorkers(self) -> None:
    workers = self.local_workers
    if self.memory_limit and not workers and self.job != 'worker':
      raise user_error.UserError(
        f'--worker_memory={self.worker_memory} limits --local_workers, which '
        'is not set, or a process of --job=worker'
      )
    if workers and self.cluster.is_given:
      raise user_error.UserError(
        f'--local_workers={workers} and --worker_hosts (or --cluster_resolver) '
        'are two kinds of workers; use one of them'
      )
    if self.cluster.is_given and self.run_locally != 'cpu':
      raise user_error.UserError(
        f'--run_locally={self.run_locally} is about devices of this machine, '
        'but partitions run on --worker_hosts; leave it out (--worker_gpus: '
        'GPUs of workers)'
      )
    if workers and self.run_locally != 'cpu':
      raise user_error.UserError(
        f'--local_workers={workers} are processes on processor cores: use '
        f'--run_locally=cpu with them, not {self.run_locally}'
      )
    replicas = self.num_replicas or 1
    if workers and self.num_partitions * replicas not in (0, workers):
      raise user_error.UserError(
        f'--worker_split_size={self.num_partitions} times --worker_replicas='
        f'{replicas} and --local_workers={workers} differ: each worker has one '
        'partition of a replica; leave one of them out, or give numbers that '
        'fit'
      )
    if workers % replicas:
      raise user_error.UserError(
        f'--local_workers={workers} cannot be shared out among '
        f'--worker_replicas={replicas}: give a multiple of it'
      )


def FromFlags() -> Options:
  """The parsed flags.

  Returns:
    The Options.

  Raises:
    UserError: for missing flags and flags that do not go together.
  """
  workers, job = cluster_flags.FromFlags(_LOCAL_WORKERS.value)
  run_locally = _RUN_LOCALLY.value
  if workers.tpu is not None and not flags.FLAGS['run_locally'].present:
    run_locally = 'tpu'
  options = Options(
    model=_MODEL.value or '',
    logdir=_LOGDIR.value or '',
    mode=_MODE.value,
    job=_JOB.value or job or 'trainer',
    run_locally=run_locally,
    num_partitions=_WORKER_SPLIT_SIZE.value,
    num_replicas=_WORKER_REPLICAS.value,
    local_workers=_LOCAL_WORKERS.value,
    worker_memory=_WORKER_MEMORY.value,
    timeline=_TIMELINE.value,
    num_micro_batches=_NUM_MICRO_BATCHES.value,
    profile_cells=_PROFILE_CELLS.value,
    model_params_override=_MODEL_PARAMS_OVERRIDE.value,
    imports=tuple(_IMPORT.value),
    data_dir=_DATA_DIR.value,
    download=_DOWNLOAD.value,
    init_checkpoint=_INIT_CHECKPOINT.value,
    max_steps=_MAX_STEPS.value,
    save_max_to_keep=_SAVER_MAX_TO_KEEP.value,
    save_keep_every_steps=_SAVER_KEEP_EVERY_STEPS.value,
    eval_at_end=_EVAL_AT_END.value,
    decode_at_end=_DECODE_AT_END.value,
    evaluation=eval_flags.FromFlags(),
    cluster=workers,
    operation=operation_flags.FromFlags(),
  )
  options.Check()
  return options
