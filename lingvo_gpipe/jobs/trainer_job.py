"""The jobs of --mode=sync: train, evaluate, decode on this machine."""

from __future__ import annotations

import contextlib
import time

from lingvo_gpipe import user_error
from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.jobs import (
  checkpoint_job,
  decode_program,
  decoder_job,
  evaler_job,
  evaluation,
  flags,
  graceful_stop,
  model_loader,
  predictions,
  prepared_model,
  progress,
  recorder,
  run_assets,
  step_log,
  step_timing,
  train_program,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.train import best_checkpoint, checkpoint, summaries
from lingvo_gpipe.workers import local_workers


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
    else:
      checkpoint_job.CheckThereIsWork(options, logdir)
    try:
      with _Workers(options, logdir) as workers:
        prepared = prepared_model.PreparedModel(options, model, logdir, workers)
        return _JOBS[options.job](options, stop, prepared).Run()
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


class _Trainer:
  """Trains from the newest checkpoint to the last step, then evaluates."""

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
  ):
    self._options = options
    self._stop = stop
    self._prepared = prepared
    self._task = prepared.task
    self._params = prepared.model.params.train
    self._eval_params = prepared.model.params.eval
    self._logdir = prepared.logdir
    self._inputs = prepared.inputs
    self._checkpointer = prepared.checkpointer
    restored = prepared.RestoreOrInit()
    if restored:
      progress.Show(f'restored {self._checkpointer.Latest()}')
    self.step = self._saved_step = restored['global_step'] if restored else 0
    self._train_seconds = restored['train_seconds'] if restored else 0.0
    done = self.step >= self._params.max_steps
    self._evaluation = evaluation.Evaluation(
      self._task,
      {k: v for k, v in self._inputs.items() if k != 'train'},
      logdir=self._logdir,
      # A finished run that is evaluated again replaces its last results.
      start_step=self.step - int(done),
      interrupted=lambda: self._stop.requested,
    )
    self._decode_programs = (
      decode_program.MakePrograms(self._task, self._inputs)
      if options.decode_at_end
      else {}
    )
    self._CheckEvaluation()

  def _CheckEvaluation(self) -> None:
    """What evaluation shall do is possible; not found out after training."""
    path = self._options.evaluation.predictions
    if path:
      with user_error.Expected(ValueError, prefix=f'--predictions={path}: '):
        self._evaluation.CheckPredictions()
    best = self._eval_params.best_metric
    if best:
      if 'dev' not in self._evaluation.datasets:
        raise user_error.UserError(
          f'eval.best_metric={best!r} is of the dev data, which model '
          f'{self._prepared.model.name} has not; define its method Dev'
        )
      with user_error.Expected(ValueError):
        best_checkpoint.FindCriterion(best, self._evaluation.MetricNames('dev'))

  def Run(self) -> int:
    """Trains, then evaluates; returns the exit status."""
    # Not before the checkpoint has shown that the directory is this model's.
    self._logdir.WriteText('params.txt', self._prepared.model.params.ToText())
    self._logdir.WriteJson('plan.json', self._task.net.plan.ToJson())
    run_assets.Write(self._logdir, self._prepared.assets)
    max_steps = self._params.max_steps
    if self.step < max_steps:
      self._TrainSteps()
      if self._stop.requested and self.step < max_steps:
        return self._Stopped()
    else:
      progress.Show(
        f'nothing to train: step {self.step} of {max_steps} is reached'
      )
    if not self._options.eval_at_end:
      return 0
    return self._Evaluate()

  def _TrainSteps(self) -> None:
    p = self._params
    progress.Show(
      f'training from step {self.step} to {p.max_steps}; building the graph'
    )
    clock = progress.StepClock()
    writer = summaries.SummaryWriter(self._logdir.train_dir, self.step)
    program = train_program.TrainProgram(
      self._task,
      self._inputs['train'],
      recorder=recorder.Recorder(
        p,
        batch_size=micro_batch.BatchSize(self._inputs['train'].BatchSpec()),
        clock=clock,
        log=step_log.StepLog(self._logdir.step_log, self.step),
        write_summary=writer.Scalars,
        show=progress.Show,
        timing=step_timing.StepTiming(
          self._task.net,
          model=self._prepared.model.name,
          logdir=self._logdir,
          pictures=self._options.timeline,
          show=progress.Show,
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
      interval = self._eval_params.interval_steps
      metrics = None
      if interval and self.step % interval == 0:
        metrics = self._EvaluateDev()
      if self._IsSaveDue() or self._IsBest(metrics):
        writer.Flush()
        self._Save()
        self._MarkBest(metrics)
    writer.Close()

  def _NextStop(self) -> int:
    """The next step at which something other than training happens."""
    p = self._params
    intervals = (
      p.save_interval_steps,
      self._eval_params.interval_steps,
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
        {
          'input_position': self.step,
          'train_seconds': self._train_seconds,
          'max_steps': self._params.max_steps,
        },
      )
    except checkpoint.CheckpointError as e:
      raise user_error.TrainingError(e) from e
    self._saved_step = self.step
    self._last_save = time.monotonic()

  def _Stopped(self) -> int:
    latest = self._checkpointer.Latest()
    progress.Show(
      f'stopped by {self._stop.signal_name} at step {self.step}; '
      + (f'saved {latest}; ' if latest else 'no step is done, nothing saved; ')
      + 'the same command goes on from there'
    )
    return self._stop.exit_status

  # Evaluation.

  def _EvaluateDev(self) -> dict[str, float] | None:
    """The metrics of the dev data; None: it has none, or was interrupted."""
    if 'dev' not in self._evaluation.datasets:
      return None
    result = self._evaluation.Run('dev', self.step)
    if result is None:
      return None
    progress.Show(evaluation.StepLine(self.step, 'dev', result))
    return result.metrics

  def _IsBest(self, metrics: dict[str, float] | None) -> bool:
    """Whether this step has the best metrics of the dev data so far."""
    criterion = self._Criterion(metrics)
    return criterion is not None and best_checkpoint.IsBest(
      self._logdir.train_dir, metrics[criterion.metric], criterion
    )

  def _MarkBest(self, metrics: dict[str, float] | None) -> None:
    """Keeps the checkpoint of this step if it is the best one."""
    criterion = self._Criterion(metrics)
    if criterion is None or self.step != self._saved_step:
      return
    value = metrics[criterion.metric]
    if self._checkpointer.RecordMetric(
      self.step, value, criterion.higher_is_better, criterion.metric
    ):
      progress.Show(
        f'best dev {criterion.metric} so far: {progress.Number(value)}, '
        f'{self._checkpointer.Best()}'
      )

  def _Criterion(
    self, metrics: dict[str, float] | None
  ) -> best_checkpoint.Criterion | None:
    return (
      best_checkpoint.FindCriterion(self._eval_params.best_metric, metrics)
      if metrics
      else None
    )

  def _Evaluate(self) -> int:
    """Evaluates all datasets, decodes; returns the exit status."""
    metrics = {}
    with predictions.Open(self._options.evaluation.predictions) as writer:
      for dataset in self._evaluation.datasets:
        result = self._evaluation.Run(dataset, self.step, writer)
        if result is None:
          return self._Stopped()
        metrics[dataset] = result.metrics
      if writer is not None:
        writer.Publish()
        progress.Show(f'predictions of step {self.step}: {writer.path}')
    self._MarkBest(metrics.get('dev'))
    for dataset, program in self._decode_programs.items():
      self._logdir.Create(self._logdir.DecoderDir(dataset))
      path = decoder_job.OutputPath(self._logdir, dataset, self.step)
      result = program.Run(path, lambda: self._stop.requested)
      if result is None:
        return self._Stopped()
      progress.Show(f'{dataset} as decoded at step {self.step}: {path}')
      metrics.setdefault(dataset, {}).update(result.metrics)
    self._prepared.WriteResults(self.step, self._train_seconds, metrics)
    prepared_model.ShowResults(metrics)
    return 0


_JOBS = {
  'trainer': _Trainer,
  'evaler': evaler_job.Evaler,
  'decoder': decoder_job.Decoder,
}
