"""Trains, evaluates and inspects registered models.

  trainer --model=image.digits.AmoebaNetDigits --logdir=/tmp/digits \\
      --run_locally=cpu --worker_split_size=2

The same command goes on where a run was stopped. Exit status: 0 done, 1 failed,
2 the command is wrong, 130 or 143 stopped by SIGINT or SIGTERM after saving.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from absl import app, logging
from absl import flags as absl_flags

from lingvo_gpipe import command_line, log_lines, quiet_import, user_error
from lingvo_gpipe.jobs import flags, progress

absl_flags.adopt_module_key_flags(flags)


def Run(options: flags.Options, *, may_restart: bool = False) -> int:
  """Does what the flags say.

  Args:
    options: the flags.
    may_restart: see run_job.Run.

  Returns:
    The exit status.
  """
  if not absl_flags.FLAGS['verbosity'].present:
    logging.set_verbosity(logging.WARNING)
  log_lines.SetFormat(options.operation.log_format)
  if log_lines.IsJson():
    logging.get_absl_handler().setFormatter(log_lines.JsonFormatter())
  is_worker = options.job == 'worker' and options.mode == 'sync'
  on_cpu = options.run_locally == 'cpu' and not (
    is_worker and options.cluster.gpus
  )
  quiet_import.ImportTensorFlow(quiet=on_cpu)
  if options.cluster.resolver:
    options = _Resolved(options)
    is_worker = options.job == 'worker' and options.mode == 'sync'
  if is_worker:
    return _Serve(options)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from lingvo_gpipe import registry
  from lingvo_gpipe.jobs import inspect_model, model_loader, run_job

  if options.mode == 'list_models':
    model_loader.ImportModules(options)
    for model in registry.ListModels():
      print(f'{model.name}  {model.summary}'.rstrip())
    return 0
  if options.mode == 'inspect_params':
    inspect_model.InspectParams(options)
    return 0
  if options.mode == 'inspect_model':
    inspect_model.InspectModel(options)
    return 0
  if options.mode == 'shell':
    from lingvo_gpipe.jobs import shell

    return shell.Run(options)
  return run_job.Run(options, may_restart=may_restart)


def _Serve(options: flags.Options) -> int:
  """What --job=worker does."""
  from lingvo_gpipe.workers import worker_server

  return worker_server.WorkerServer(
    options.cluster.hosts,
    options.cluster.task,
    listen=options.cluster.listen,
    threads=options.cluster.threads,
    num_gpus=options.cluster.gpus,
    memory_limit=options.memory_limit,
    show=progress.Show,
  ).Run()


def _Resolved(options: flags.Options) -> flags.Options:
  """The options with the workers that --cluster_resolver finds."""
  from lingvo_gpipe.workers import cluster_resolvers

  asked = options.cluster
  if asked.resolver == 'slurm':
    found = cluster_resolvers.Slurm(asked.port)
  else:
    found = cluster_resolvers.Kubernetes(asked.label, asked.port)
  job = options.job
  if not absl_flags.FLAGS['job'].present and found.job:
    job = found.job
  task = asked.task if found.task is None else found.task
  options = dataclasses.replace(
    options,
    job=job,
    cluster=dataclasses.replace(
      asked, hosts=found.hosts, task=task, resolver=''
    ),
  )
  options.Check()
  return options


def Main(argv: Sequence[str]) -> int:
  """The program after its flags are parsed.

  Args:
    argv: the program's name and what no flag took.

  Returns:
    The exit status.
  """
  try:
    if len(argv) > 1:
      raise user_error.UserError(
        f'unexpected argument {argv[1]!r}: all arguments are flags, such as '
        '--model=NAME; --help lists them'
      )
    return Run(flags.FromFlags(), may_restart=True)
  except user_error.UserError as e:
    status = command_line.ShowError(e)
    logging.debug('in full:', exc_info=e)  # With --verbosity=1.
    return status
  except KeyboardInterrupt:
    log_lines.Show('error: aborted; earlier checkpoints stay', sys.stderr)
    return 130
  except Exception as e:
    if not log_lines.IsJson():
      raise
    log_lines.ShowFault(e)
    return 1


if __name__ == '__main__':
  app.run(Main, flags_parser=command_line.ParseFlags)
