"""The jobs of --mode=sync: train and evaluate on this machine's devices."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.jobs import (
  evaluation,
  flags,
  graceful_stop,
  inspect_model,
  model_loader,
  progress,
  recorder,
  step_log,
  step_timing,
  train_program,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import checkpoint, summaries
from lingvo_gpipe.workers import local_workers


def Show(line: str) -> None:
  """Prints at once, also into a file or pipe."""
  print(line, flush=True)


def Run(options: flags.Options) -> int:
  """Runs the job.

  Args:
    options: the flags.

  Returns:
    The exit status.

  Raises:
    UserError: for what the person who typed the command can mend.
  """
  with graceful_stop.GracefulStop() as stop:
    model = model_loader.Load(options)
    logdir = logdir_lib.LogDir(options.logdir)
    if options.job == 'trainer':
      logdir.Create(logdir.train_dir)
    try:
      with _Workers(options, logdir) as workers:
        job = _Job(options, stop, model, logdir, workers)
        return job.Evaluate() if options.job == 'evaler' else job.Train()
    except local_workers.WorkerLostError as e:
      hint = '. The same command goes on from the last checkpoint'
      raise user_error.TrainingError(
        f'{e}{hint if options.job == "trainer" else ""}'
      ) from e


def _Workers(
  options: flags.Options, logdir: logdir_lib.LogDir
) -> contextlib.AbstractContextManager[local_workers.LocalWorkers | None]:
  """A context with the processes of --local_workers, or with None."""
  if not options.local_workers:
    return contextlib.nullcontext()
  return local_workers.LocalWorkers(
    options.local_workers,
    memory_limit=options.memory_limit,
    # An evaler leaves the directory of a run as it is.
    log_dir=logdir.workers_dir if options.job == 'trainer' else None,
  )


class _Job:
  """A model with its variables, as the newest checkpoint left them."""

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    model: model_loader.Model,
    logdir: logdir_lib.LogDir,
    workers: local_workers.LocalWorkers | None,
  ):
    self._start = time.monotonic()
    self._options = options
    self._stop = stop
    self._model = model
    self._params = model.params.train
    self._logdir = logdir
    self._inputs = model_loader.Inputs(model)
    model_loader.CheckData(self._inputs)
    self._batch_spec = self._inputs['train'].BatchSpec()
    self._task = model.Instantiate()
    if workers is not None:
      self._cluster = cluster.Workers(options.local_workers)
    else:
      with user_error.Expected(ValueError):
        self._cluster = cluster.Local(options.run_locally, model.num_partitions)
    with user_error.Expected(ValueError):
      plan = self._task.Plan(self._batch_spec, self._cluster.devices)
    self._analysis = inspect_model.Analyze(model, self._task, plan)
    self._ShowStart(plan)
    if workers is not None:
      # Not before: workers take some seconds to start.
      cluster.Connect(workers.addresses)
      self._ShowWorkers(workers)
    self._task.InstantiateVariables()
    self._checkpointer = checkpoint.Checkpointer(
      logdir.train_dir,
      self._task.variables_for_checkpoint,
      model=model.name,
      max_to_keep=self._params.save_max_to_keep,
    )
    self._Restore()

  def _ShowStart(self, plan: Any) -> None:
    Show(f'model {self._model.name}, {self._model.source}')
    Show(f'logdir {self._logdir.path}')
    Show(f'devices {", ".join(self._cluster.devices)}')
    Show('')
    Show(plan.ToText())
    Show('')
    Show(inspect_model.SummaryText(self._analysis))

  def _ShowWorkers(self, workers: local_workers.LocalWorkers) -> None:
    for k, address in enumerate(workers.addresses):
      Show(
        f'worker {k} at {address}, process {workers.pids[k]}, core '
        f'{workers.cores[k]}'
      )

  def _Restore(self) -> None:
    with user_error.Expected(checkpoint.CheckpointError):
      restored = self._checkpointer.Restore()
    self.step = self._saved_step = restored['global_step'] if restored else 0
    self._train_seconds = restored['train_seconds'] if restored else 0.0
    if restored:
      Show(f'restored {self._checkpointer.Latest()}')
    elif self._options.job == 'evaler':
      raise user_error.UserError(
        f'{self._logdir.train_dir} holds no checkpoint to evaluate; train '
        'first, or give the --logdir of a run'
      )
    done = self.step >= self._params.max_steps
    self._evaluation = evaluation.Evaluation(
      self._task,
      {k: v for k, v in self._inputs.items() if k != 'train'},
      # A trainer may be at work in the directory that an evaler looks at.
      logdir=self._logdir if self._options.job == 'trainer' else None,
      # A finished run that is evaluated again replaces its last results.
      start_step=self.step - int(done),
      interrupted=lambda: self._stop.requested,
    )

  # Training.

  def Train(self) -> int:
    """Trains to the last step, then evaluates; returns the exit status."""
    # Not before the checkpoint has shown that the directory is this model's.
    self._logdir.WriteText('params.txt', self._model.params.ToText())
    self._logdir.WriteJson('plan.json', self._task.net.plan.ToJson())
    max_steps = self._params.max_steps
    if self.step < max_steps:
      self._TrainSteps()
      if self._stop.requested and self.step < max_steps:
        return self._Stopped()
    else:
      Show(f'nothing to train: step {self.step} of {max_steps} is reached')
    if not self._options.eval_at_end:
      return 0
    return self.Evaluate()

  def _TrainSteps(self) -> None:
    p = self._params
    Show(f'training from step {self.step} to {p.max_steps}; building the graph')
    clock = progress.StepClock()
    writer = summaries.SummaryWriter(self._logdir.train_dir, self.step)
    program = train_program.TrainProgram(
      self._task,
      self._inputs['train'],
      recorder=recorder.Recorder(
        p,
        batch_size=self._inputs['train'].params.batch_size,
        clock=clock,
        log=step_log.StepLog(self._logdir.step_log, self.step),
        write_summary=writer.Scalars,
        show=Show,
        timing=step_timing.StepTiming(
          self._task.net,
          model=self._model.name,
          logdir=self._logdir,
          pictures=self._options.timeline,
          show=Show,
        ),
      ),
      clock=clock,
      step=self.step,
    )
    self._program = program
    started, before = time.monotonic(), self._train_seconds
    self._last_save = started
    while self.step < p.max_steps and not self._stop.requested:
      with self._task.net.NamedFailures():
        program.Run(self._NextStop(), self._Interrupted)
      self.step = program.step
      self._train_seconds = before + time.monotonic() - started
      interval = self._model.params.eval.interval_steps
      if interval and self.step % interval == 0:
        self._EvaluateDev()
      if self._IsSaveDue():
        writer.Flush()
        self._Save()
    writer.Close()

  def _NextStop(self) -> int:
    """The next step at which something other than training happens."""
    p = self._params
    intervals = (
      p.save_interval_steps,
      self._model.params.eval.interval_steps,
    )
    stops = [(self.step // n + 1) * n for n in intervals if n]
    return min([p.max_steps, *stops])

  def _Interrupted(self) -> bool:
    return self._stop.requested or self._IsSaveTime()

  def _IsSaveTime(self) -> bool:
    seconds = self._params.save_interval_seconds
    if not seconds or self._program.step == self._saved_step:
      return False
    return time.monotonic() - self._last_save >= seconds

  def _IsSaveDue(self) -> bool:
    steps = self._params.save_interval_steps
    return (
      self._stop.requested
      or self.step >= self._params.max_steps
      or bool(steps and self.step % steps == 0)
      or self._IsSaveTime()
    )

  def _Save(self) -> None:
    if self.step == self._saved_step:
      return
    try:
      self._checkpointer.Save(
        self.step,
        # Step t reads mini-batch t, so the position is the number of steps.
        {'input_position': self.step, 'train_seconds': self._train_seconds},
      )
    except checkpoint.CheckpointError as e:
      raise user_error.TrainingError(e) from e
    self._saved_step = self.step
    self._last_save = time.monotonic()

  def _Stopped(self) -> int:
    latest = self._checkpointer.Latest()
    Show(
      f'stopped by {self._stop.signal_name} at step {self.step}; '
      + (f'saved {latest}; ' if latest else 'no step is done, nothing saved; ')
      + 'the same command goes on from there'
    )
    return self._stop.exit_status

  # Evaluation.

  def _EvaluateDev(self) -> None:
    if 'dev' in self._evaluation.datasets:
      metrics = self._evaluation.Run('dev', self.step)
      if metrics is not None:
        values = [f'{k} {progress.Number(v)}' for k, v in metrics.items()]
        Show(f'step {self.step} dev {" ".join(values)}')

  def Evaluate(self) -> int:
    """Evaluates all datasets; returns the exit status."""
    results = {
      'model': self._model.name,
      'source': self._model.source,
      'global_step': self.step,
      'total_parameters': self._analysis['total_parameters'],
      'num_partitions': self._model.num_partitions,
      'num_micro_batches': self._task.net.plan.num_micro_batches,
      'train_seconds': self._train_seconds,
    }
    lines = []
    for dataset in self._evaluation.datasets:
      metrics = self._evaluation.Run(dataset, self.step)
      if metrics is None:
        return self._Stopped()
      results[dataset] = metrics
      lines += evaluation.ResultLines(dataset, metrics)
    if 'accuracy' in results.get('test', {}):
      results['test_accuracy'] = results['test']['accuracy']
    results['wall_seconds'] = time.monotonic() - self._start
    self._logdir.WriteJson('results.json', results)
    for line in lines:
      Show(line)
    return 0
