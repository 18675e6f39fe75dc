"""--job=trainer: trains, evaluates on the way and at the end, decodes."""

from __future__ import annotations

import contextlib
import os
import time

from lingvo_gpipe import user_error
from lingvo_gpipe.gpipe import micro_batch, nonfinite
from lingvo_gpipe.jobs import (
  checkpoint_jobs,
  decode_program,
  decoder_job,
  dev_history,
  device_metrics,
  evaluation,
  flags,
  graceful_stop,
  prepared_model,
  progress,
  recorder,
  run_assets,
  saving,
  step_log,
  step_profiler,
  step_timing,
  tolerant_writing,
  train_program,
  watchdog,
)
from lingvo_gpipe.train import best_checkpoint, summaries, train_params


class Trainer:
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
    self._clock = progress.StepClock()
    restored = prepared.RestoreOrInit()
    if restored:
      progress.Show(f'restored {self._checkpointer.Latest()}')
    self.step = restored['global_step'] if restored else 0
    self._saver = saving.Saver(
      self._checkpointer, self._params, step=self.step, show=progress.Show
    )
    self._writing = tolerant_writing.TolerantWriting(progress.Show)
    self._train_seconds = restored['train_seconds'] if restored else 0.0
    self._dev = dev_history.DevHistory(
      os.path.join(self._logdir.train_dir, 'dev_metrics.jsonl'), self.step
    )
    done = self.step >= self._params.max_steps
    self._evaluation = evaluation.Evaluation(
      self._task,
      self._inputs,
      logdir=self._logdir,
      # A finished run that is evaluated again replaces its last results.
      start_step=self.step - int(done),
      interrupted=lambda: self._stop.requested,
    )
    self._decode_programs = (
      decode_program.MakePrograms(self._task, self._inputs)
      if options.decode_at_end and 'decoder' not in options.jobs
      else {}
    )
    self._jobs = checkpoint_jobs.CheckpointJobs(
      options, stop, prepared, self._evaluation
    )
    self._CheckEvaluation()

  def _CheckEvaluation(self) -> None:
    """What evaluation shall do is possible; not found out after training."""
    with user_error.Expected(ValueError):
      train_params.Check(self._params, self._eval_params)
    path = self._options.evaluation.predictions
    if path:
      with user_error.Expected(ValueError, prefix=f'--predictions={path}: '):
        self._evaluation.CheckPredictions()
    best = self._eval_params.best_metric
    early = self._eval_params.early_stop_evals
    if best or early:
      if 'dev' not in self._evaluation.datasets:
        wish = f'best_metric={best!r}' if best else f'early_stop_evals={early}'
        raise user_error.UserError(
          f'eval.{wish} is of the dev data, which model '
          f'{self._prepared.model.name} has not; define its method Dev'
        )
      with user_error.Expected(ValueError):
        best_checkpoint.FindCriterion(best, self._evaluation.MetricNames('dev'))

  def Run(self) -> int:
    """Trains, then evaluates; returns the exit status."""
    # Not before the checkpoint has shown that the directory is this model's.
    with user_error.Expected(OSError, prefix='cannot write to --logdir: '):
      self._logdir.WriteText('params.txt', self._prepared.model.params.ToText())
      self._logdir.WriteJson('plan.json', self._task.net.plan.ToJson())
    run_assets.Write(self._logdir, self._prepared.assets)
    # The process before may have been stopped in it.
    self._WorkOnCheckpoint()
    max_steps = self._params.max_steps
    if self._IsEnough():
      progress.Show(f'nothing to train: step {self.step}, {self._WhyEnough()}')
    elif self.step < max_steps:
      with watchdog.Watchdog(
        self._options.operation.watchdog_seconds,
        self._clock.Activity,
        progress.Show,
      ):
        self._TrainSteps()
      if self._IsEnough():
        progress.Show(f'training ends at step {self.step}: {self._WhyEnough()}')
      elif self._stop.requested and self.step < max_steps:
        return self._Stopped()
    else:
      progress.Show(
        f'nothing to train: step {self.step} of {max_steps} is reached'
      )
    status = self._Evaluate() if self._options.eval_at_end else 0
    self._saver.Finish()
    if status:
      return status
    if not self._WorkOnCheckpoint():  # It may be complete only now.
      return self._Stopped()
    if not self._options.eval_at_end:
      self._jobs.ShowResults()
    return 0

  def _TrainSteps(self) -> None:
    p = self._params
    progress.Show(
      f'training from step {self.step} to {p.max_steps}; building the graph'
    )
    clock = self._clock
    writer = summaries.SummaryWriter(self._logdir.train_dir, self.step)
    program = train_program.TrainProgram(
      self._task,
      self._inputs['train'],
      recorder=recorder.Recorder(
        p,
        batch_size=micro_batch.BatchSize(self._inputs['train'].BatchSpec()),
        unit=self._task.params.loss_unit,
        clock=clock,
        log=step_log.StepLog(self._logdir.step_log, self.step),
        device_log=step_log.StepLog(self._logdir.device_log, self.step),
        write_summary=writer.Scalars,
        show=progress.Show,
        timing=step_timing.StepTiming(
          self._task.net,
          model=self._prepared.model.name,
          logdir=self._logdir,
          pictures=self._options.timeline,
          show=progress.Show,
        ),
        measure=device_metrics.DeviceMetrics(
          self._task.net, self._prepared.workers
        ).Measure,
        explain=lambda step, batch: nonfinite.Explain(
          self._task.net, batch, step
        ),
      ),
      clock=clock,
      step=self.step,
      profiler=step_profiler.StepProfiler(
        self._options.operation.ProfiledSteps(),
        self._logdir.train_dir,
        progress.Show,
      ),
    )
    self._program = program
    started, before = time.monotonic(), self._train_seconds
    if self._eval_params.early_stop_evals and not self._dev.Has(self.step):
      # The process before was stopped in this evaluation.
      self._EvaluateDev()
    try:
      while not self._IsDone() and not self._stop.requested:
        with self._task.net.NamedFailures():
          program.Run(self._NextStop(), self._Interrupted)
        self.step = program.step
        self._train_seconds = before + time.monotonic() - started
        metrics = self._EvaluateDev()
        best = self._IsBest(metrics)
        if self._IsSaveDue() or best:
          self._Save(metrics)
          pause = time.monotonic()
          self._WorkOnCheckpoint()
          pause = time.monotonic() - pause
          started += pause
          self._saver.Skip(pause)
    except user_error.UserError:
      # What is being written would be lost with this process.
      self._saver.Wait()
      raise
    finally:
      program.Close()
    with contextlib.suppress(OSError):  # Which the recorder has told.
      writer.Flush()

  def _IsDone(self) -> bool:
    return self.step >= self._params.max_steps or self._IsEnough()

  def _NextStop(self) -> int:
    """The next step at which something other than training happens."""
    stops = [self._params.max_steps, self._saver.NextStop(self.step)]
    interval = self._eval_params.interval_steps
    if interval:
      stops.append((self.step // interval + 1) * interval)
    return min(stop for stop in stops if stop is not None)

  def _Interrupted(self) -> bool:
    return self._stop.requested or self._saver.IsTime(self._program.step)

  def _IsSaveDue(self) -> bool:
    return (
      self._stop.requested or self._IsDone() or self._saver.IsDue(self.step)
    )

  def _Save(self, metrics: dict[str, float] | None) -> None:
    """Begins to save; the checkpoint may become the best one.

    Args:
      metrics: of the dev data at this step; None: not evaluated.
    """
    step = self.step
    self._saver.Save(
      step,
      # Step t reads mini-batch t, so the position is the number of steps.
      {
        'input_position': step,
        'train_seconds': self._train_seconds,
        # An evaler waits for this step.
        'max_steps': step if self._IsEnough() else self._params.max_steps,
      },
      on_saved=lambda: self._MarkBest(step, metrics),
    )

  def _WorkOnCheckpoint(self) -> bool:
    """What --job=evaler and decoder do with the checkpoint of this step.

    Returns:
      Whether nothing is left to do; False where it was interrupted.
    """
    if not self._jobs or not self._saver.IsSaved(self.step):
      return True
    return self._jobs.WorkOnStep(self.step)

  def _Stopped(self) -> int:
    self._saver.Finish()
    latest = self._checkpointer.Latest()
    progress.Show(
      f'stopped by {self._stop.signal_name} at step {self.step}; '
      + (f'saved {latest}; ' if latest else 'no step is done, nothing saved; ')
      + 'the same command goes on from there'
    )
    return self._stop.exit_status

  # Evaluation.

  def _EvaluateDev(self) -> dict[str, float] | None:
    """The metrics of the dev data.

    Returns:
      {name: mean}; None where it is not due or was interrupted, or there is no
      dev data.
    """
    interval = self._eval_params.interval_steps
    due = self.step and interval and self.step % interval == 0
    if not due or 'dev' not in self._evaluation.datasets:
      return None
    result = self._evaluation.Run('dev', self.step)
    if result is None:
      return None
    progress.Show(evaluation.StepLine(self.step, 'dev', result))
    with self._writing('dev_metrics.jsonl'):
      self._dev.Add(self.step, result.metrics)
    return result.metrics

  def _IsEnough(self) -> bool:
    """Whether early stopping ends training at this step."""
    patience = self._eval_params.early_stop_evals
    best = self._dev.Best(self._eval_params.best_metric) if patience else None
    return best is not None and best.evals_since >= patience

  def _WhyEnough(self) -> str:
    best = self._dev.Best(self._eval_params.best_metric)
    since = f'{best.evals_since} evaluations without a better'
    if best.step is None:
      return f'{since} dev {best.metric}, none of which is a number'
    return (
      f'{since} dev {best.metric} than {progress.Number(best.value)} of step '
      f'{best.step} (eval.early_stop_evals)'
    )

  def _IsBest(self, metrics: dict[str, float] | None) -> bool:
    """Whether this step has the best metrics of the dev data so far."""
    criterion = self._Criterion(metrics)
    if criterion is None:
      return False
    # The checkpoint that is being written may be a better one.
    self._saver.Wait()
    return best_checkpoint.IsBest(
      self._logdir.train_dir, metrics[criterion.metric], criterion
    )

  def _MarkBest(self, step: int, metrics: dict[str, float] | None) -> None:
    """Keeps the complete checkpoint of a step if it is the best one."""
    criterion = self._Criterion(metrics)
    if criterion is None:
      return
    value = metrics[criterion.metric]
    with self._writing('best.json'):
      if self._checkpointer.RecordMetric(
        step, value, criterion.higher_is_better, criterion.metric
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
    metrics = self._jobs.Metrics(
      'evaler', self.step
    ) or self._evaluation.RunAll(
      self.step, self._options.evaluation.predictions
    )
    if metrics is None:
      return self._Stopped()
    if self._saver.IsSaved(self.step):
      self._MarkBest(self.step, metrics.get('dev'))
    decoded = self._jobs.Metrics('decoder', self.step) or decoder_job.RunAll(
      self._decode_programs,
      self._logdir,
      self.step,
      lambda: self._stop.requested,
    )
    if decoded is None:
      return self._Stopped()
    for dataset, scores in decoded.items():
      metrics[dataset] = {**metrics.get(dataset, {}), **scores}
    with self._writing('results.json'):
      self._prepared.WriteResults(self.step, self._train_seconds, metrics)
    prepared_model.ShowResults(metrics)
    return 0
