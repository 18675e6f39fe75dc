"""Trains, evaluates and inspects registered models.

  trainer --model=image.digits.AmoebaNetDigits --logdir=/tmp/digits \\
      --run_locally=cpu --worker_split_size=2

The same command goes on where a run was stopped. Exit status: 0 done, 1 failed,
2 the command is wrong, 130 or 143 stopped by SIGINT or SIGTERM after saving.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from absl import app, logging
from absl import flags as absl_flags

from lingvo_gpipe import command_line, quiet_import, user_error
from lingvo_gpipe.jobs import flags

absl_flags.adopt_module_key_flags(flags)


def Run(options: flags.Options) -> int:
  """Does what the flags say.

  Args:
    options: the flags.

  Returns:
    The exit status.
  """
  if not absl_flags.FLAGS['verbosity'].present:
    logging.set_verbosity(logging.WARNING)
  quiet_import.ImportTensorFlow(quiet=options.run_locally == 'cpu')
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from lingvo_gpipe import registry
  from lingvo_gpipe.jobs import inspect_model, model_loader, trainer_job

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
  return trainer_job.Run(options)


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
    return Run(flags.FromFlags())
  except user_error.UserError as e:
    status = command_line.ShowError(e)
    logging.debug('in full:', exc_info=e)  # With --verbosity=1.
    return status
  except KeyboardInterrupt:
    print('error: aborted; earlier checkpoints stay', file=sys.stderr)
    return 130


if __name__ == '__main__':
  app.run(Main, flags_parser=command_line.ParseFlags)
