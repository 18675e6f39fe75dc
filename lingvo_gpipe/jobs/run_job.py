"""The jobs of --mode=sync that have a model, with the workers they run on."""

from __future__ import annotations

import contextlib
from typing import Any

from lingvo_gpipe.jobs import (
  checkpoint_follower,
  flags,
  graceful_stop,
  model_loader,
  prepared_model,
  progress,
  recovery,
  trainer_job,
)
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.workers import (
  local_workers,
  remote_workers,
  worker_lost,
)


def Run(options: flags.Options, *, may_restart: bool = False) -> int:
  """Runs the job.

  Args:
    options: the flags.
    may_restart: whether the process may become a new one of the same command,
      to go on after the loss of a worker.

  Returns:
    The exit status.

  Raises:
    UserError: for what the person who typed the command can mend.
  """
  with graceful_stop.GracefulStop() as stop:
    model = model_loader.Load(options)
    logdir = logdir_lib.LogDir(options.logdir)
    trains = 'trainer' in options.jobs
    if trains:
      logdir.Create(logdir.train_dir)
    else:
      checkpoint_follower.CheckThereIsWork(options, logdir)
    recover = recovery.Recovery(
      options.cluster.restarts if may_restart else 0, logdir, stop
    )
    try:
      with _Workers(options, logdir, recover, stop) as workers:
        prepared = prepared_model.PreparedModel(options, model, logdir, workers)
        job = (
          trainer_job.Trainer
          if trains
          else checkpoint_follower.CheckpointFollower
        )
        return job(options, stop, prepared).Run()
    except remote_workers.InterruptedWaitError:
      progress.Show(f'stopped by {stop.signal_name}; no worker was waited for')
      return stop.exit_status
    except worker_lost.WorkerLostError as e:
      lost = e
    # Not within the block above: this process may end here.
    recover.Restart(lost)
    raise lost


def _Workers(
  options: flags.Options,
  logdir: logdir_lib.LogDir,
  recover: recovery.Recovery,
  stop: graceful_stop.GracefulStop,
) -> contextlib.AbstractContextManager[Any]:
  """A context with the workers that the flags name, or with None."""
  watch = {
    'lost_seconds': options.cluster.lost_seconds,
    'on_stuck': recover.OnStuck,
  }
  if options.local_workers:
    workers = local_workers.LocalWorkers(
      options.local_workers,
      memory_limit=options.memory_limit,
      # An evaler leaves the directory of a run as it is.
      log_dir=logdir.workers_dir if 'trainer' in options.jobs else None,
      **watch,
    )
  elif options.cluster.hosts:
    workers = remote_workers.RemoteWorkers(
      options.cluster.hosts,
      wait_seconds=options.cluster.wait,
      interrupted=lambda: stop.requested,
      show=progress.Show,
      **watch,
    )
  else:
    return contextlib.nullcontext()
  recover.SetWorkers(workers)
  return workers
