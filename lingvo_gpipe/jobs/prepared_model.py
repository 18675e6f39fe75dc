"""A model on its devices, ready for a job: planned, with variables.

What can be wrong with the command, the data or another run's checkpoint comes
out here, before anything long.
"""

from __future__ import annotations

import time
from typing import Any

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.gpipe import device_names
from lingvo_gpipe.gpipe.planning import plan as plan_lib
from lingvo_gpipe.jobs import (
  evaluation,
  flags,
  inspect_model,
  model_loader,
  progress,
  run_assets,
  shared_directory,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  init_from_checkpoint,
)
from lingvo_gpipe.workers import local_workers, remote_workers


class PreparedModel:
  """A task with its inputs, plan, devices, variables and checkpoints.

  Attributes:
    model: as loaded.
    logdir: of the run.
    inputs: {'train', 'dev' or 'test': input}.
    assets: {name: content} of the files that the run keeps.
    task: with variables, not restored yet.
    checkpointer: of its variables.
    workers: processes that it runs on; None: on this one's devices.
  """

  def __init__(
    self,
    options: flags.Options,
    model: model_loader.Model,
    logdir: logdir_lib.LogDir,
    workers: local_workers.LocalWorkers | remote_workers.RemoteWorkers | None,
  ):
    """Prints the plan.

    Args:
      options: the flags.
      model: as loaded.
      logdir: of the run.
      workers: processes that it runs on; None: on this one's devices.

    Raises:
      UserError: for what the person who typed the command can mend.
    """
    self._start = time.monotonic()
    self.model = model
    self.logdir = logdir
    self.workers = workers
    self.inputs = model_loader.Inputs(model)
    model_loader.CheckData(self.inputs)
    self.assets = self.inputs['train'].Assets()
    run_assets.Check(logdir, self.assets)
    batch_spec = self.inputs['train'].BatchSpec()
    self.task = model.Instantiate()
    self._init_plan = self._InitPlan(options)
    if workers is not None:
      devices = cluster.Workers(
        options.local_workers or len(options.cluster.hosts),
        options.cluster.gpus,
      ).devices
      _CheckAllAreUsed(devices, self.task, options)
    elif options.cluster.tpu is not None:
      with user_error.Expected(ValueError):
        devices = cluster.Tpus(
          options.cluster.tpu,
          model.num_partitions,
          model.num_replicas,
          client=options.cluster.trainer_address,
          wait_seconds=options.cluster.wait,
          show=progress.Show,
        ).devices
    else:
      with user_error.Expected(ValueError):
        devices = cluster.Local(
          options.run_locally, model.num_partitions, model.num_replicas
        ).devices
    with user_error.Expected(ValueError):
      plan = self.task.Plan(batch_spec, devices)
    self._analysis = inspect_model.Analyze(model, self.task, plan)
    self._ShowStart(devices, plan)
    if workers is not None:
      # Not before: workers take some seconds to start.
      addresses = workers.addresses
      with user_error.Expected(ValueError):
        cluster.Connect(
          addresses, options.cluster.gpus, options.cluster.trainer_address
        )
      for line in workers.Describe():
        progress.Show(line)
    self.task.InstantiateVariables()
    self.checkpointer = checkpoint.Checkpointer(
      logdir.train_dir,
      self.task.variables_for_checkpoint,
      model=model.name,
      max_to_keep=model.params.train.save_max_to_keep,
      keep_every_steps=model.params.train.save_keep_every_steps,
      verify=model.params.train.verify_checkpoints,
      io_device=self._IoDevice(options, devices),
    )

  def _IoDevice(
    self, options: flags.Options, devices: tuple[str, ...]
  ) -> str | None:
    """Who reads and writes checkpoints; None: each worker its own variables."""
    if options.local_workers or not any(map(device_names.HostOf, devices)):
      return None
    unseen = shared_directory.NotSeenBy(self.logdir.train_dir, devices)
    if not unseen:
      return None
    progress.Show(
      f'{", ".join(unseen)} do not see {self.logdir.path}: this process reads '
      'and writes all checkpoints. A directory that all machines share spares '
      'that way'
    )
    return cluster.ClientDevice()

  def _InitPlan(
    self, options: flags.Options
  ) -> init_from_checkpoint.InitPlan | None:
    """What a run that has no checkpoint of its own starts from."""
    init_from = self.task.init_from
    if 'trainer' not in options.jobs or not init_from.params.checkpoint:
      return None
    own = checkpoint_files.Latest(self.logdir.train_dir)
    if own is not None:
      progress.Show(
        f'{init_from.params.checkpoint} (train.init_from) is not read: the run '
        f'has {own}'
      )
      return None
    with user_error.Expected(checkpoint.CheckpointError):
      return init_from.Plan(self.task.VariableSpecs())

  def _ShowStart(
    self, devices: tuple[str, ...], plan: plan_lib.PipelinePlan
  ) -> None:
    progress.Show(f'model {self.model.name}, {self.model.source}')
    progress.Show(f'logdir {self.logdir.path}')
    progress.Show(f'devices {", ".join(devices)}')
    progress.Show('')
    progress.Show(plan.ToText())
    progress.Show('')
    progress.Show(inspect_model.SummaryText(self._analysis))

  def RestoreOrInit(self) -> dict[str, Any] | None:
    """Sets the variables to the run's newest checkpoint, or another run's.

    Returns:
      Metadata of the run's own checkpoint, as of Checkpointer.Restore; None
      where it has none.

    Raises:
      UserError: for a checkpoint of another model, or a damaged one.
    """
    with user_error.Expected(checkpoint.CheckpointError):
      if self._init_plan is None:
        return self.checkpointer.Restore()
      self.task.InitFrom(self._init_plan)
    progress.Show(self._init_plan.ToText())
    return None

  def WriteResults(
    self,
    step: int,
    train_seconds: float,
    metrics: dict[str, dict[str, float]],
    name: str = 'results.json',
  ) -> None:
    """Writes what came out.

    Args:
      step: evaluated.
      train_seconds: how long training took so far.
      metrics: {dataset: {metric: mean}}.
      name: of the file.
    """
    results = {
      'model': self.model.name,
      'source': self.model.source,
      'global_step': step,
      'total_parameters': self._analysis['total_parameters'],
      'num_partitions': self.model.num_partitions,
      'num_replicas': self.model.num_replicas,
      'num_micro_batches': self.task.net.plan.num_micro_batches,
      'train_seconds': train_seconds,
      **metrics,
    }
    if 'accuracy' in metrics.get('test', {}):
      results['test_accuracy'] = metrics['test']['accuracy']
    results['wall_seconds'] = time.monotonic() - self._start
    self.logdir.WriteJson(name, results)


def ShowResults(metrics: dict[str, dict[str, float]]) -> None:
  """Prints the lines that scripts may rely on.

  Args:
    metrics: {dataset: {metric: mean}}.
  """
  for dataset, values in metrics.items():
    for line in evaluation.ResultLines(dataset, values):
      progress.Show(line)


def _CheckAllAreUsed(
  devices: tuple[str, ...], task: Any, options: flags.Options
) -> None:
  """Raises UserError where workers would stay idle, or are too few."""
  needed = task.net.num_devices
  if len(devices) == needed:
    return
  flag = '--local_workers' if options.local_workers else '--worker_hosts'
  replicas = task.net.params.num_replicas
  if len(devices) < needed:
    of_all = f' of {replicas} replicas (--worker_replicas)'
    raise user_error.UserError(
      f'{needed} partitions (--worker_split_size)'
      f'{of_all if replicas > 1 else ""} need a device each, but {flag} gives '
      f'{len(devices)}: {", ".join(devices)}'
    )
  raise user_error.UserError(
    f'{len(devices) - needed} of {len(devices)} devices of {flag} would stay '
    f'idle ({", ".join(devices[needed:])}): set --worker_split_size='
    f'{len(devices)}, or more --worker_replicas, or give fewer workers'
  )
