"""A model on its devices, ready for a job: planned, with variables.

What can be wrong with the command, the data or another run's checkpoint comes
out here, before anything long.
"""

from __future__ import annotations

import time
from typing import Any

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.gpipe import plan as plan_lib
from lingvo_gpipe.jobs import (
  evaluation,
  flags,
  inspect_model,
  model_loader,
  progress,
  run_assets,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  init_from_checkpoint,
)
from lingvo_gpipe.workers import local_workers


class PreparedModel:
  """A task with its inputs, plan, devices, variables and checkpoints.

  Attributes:
    model: as loaded.
    logdir: of the run.
    inputs: {'train', 'dev' or 'test': input}.
    assets: {name: content} of the files that the run keeps.
    task: with variables, not restored yet.
    checkpointer: of its variables.
  """

  def __init__(
    self,
    options: flags.Options,
    model: model_loader.Model,
    logdir: logdir_lib.LogDir,
    workers: local_workers.LocalWorkers | None,
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
    self.inputs = model_loader.Inputs(model)
    model_loader.CheckData(self.inputs)
    self.assets = self.inputs['train'].Assets()
    run_assets.Check(logdir, self.assets)
    batch_spec = self.inputs['train'].BatchSpec()
    self.task = model.Instantiate()
    self._init_plan = self._InitPlan(options)
    if workers is not None:
      devices = cluster.Workers(options.local_workers).devices
    else:
      with user_error.Expected(ValueError):
        devices = cluster.Local(
          options.run_locally, model.num_partitions
        ).devices
    with user_error.Expected(ValueError):
      plan = self.task.Plan(batch_spec, devices)
    self._analysis = inspect_model.Analyze(model, self.task, plan)
    self._ShowStart(devices, plan)
    if workers is not None:
      # Not before: workers take some seconds to start.
      cluster.Connect(workers.addresses)
      _ShowWorkers(workers)
    self.task.InstantiateVariables()
    self.checkpointer = checkpoint.Checkpointer(
      logdir.train_dir,
      self.task.variables_for_checkpoint,
      model=model.name,
      max_to_keep=model.params.train.save_max_to_keep,
    )

  def _InitPlan(
    self, options: flags.Options
  ) -> init_from_checkpoint.InitPlan | None:
    """What a run that has no checkpoint of its own starts from."""
    init_from = self.task.init_from
    if options.job != 'trainer' or not init_from.params.checkpoint:
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


def _ShowWorkers(workers: local_workers.LocalWorkers) -> None:
  for k, address in enumerate(workers.addresses):
    progress.Show(
      f'worker {k} at {address}, process {workers.pids[k]}, core '
      f'{workers.cores[k]}'
    )
