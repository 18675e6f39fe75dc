"""Writes a TensorFlow SavedModel from a training checkpoint.

  python -m tools.export --model=image.digits.AmoebaNetDigits \\
      --logdir=/tmp/digits --output=/tmp/digits_model

It may be loaded by TensorFlow alone, anywhere; see docs/export.md.
"""

from __future__ import annotations

import os

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from lingvo_gpipe.jobs import flags as job_flags
from tools.benchmarks import command

FLAGS = flags.FLAGS

# The trainer's, with the trainer's meaning.
for _name in ('model', 'logdir', 'data_dir', 'model_params_override', 'import'):
  flags.declare_key_flag(_name)

_OUTPUT = flags.DEFINE_string(
  'output', '', 'The directory to write. It must be new, or empty.'
)
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint',
  '',
  'The checkpoint to export, such as /tmp/digits/train/ckpt-00000600. Empty: '
  'the newest one of --logdir.',
)
_OVERWRITE = flags.DEFINE_boolean(
  'overwrite', False, 'Replace the SavedModel that --output holds.'
)


def Main() -> int:
  """The tool."""
  options = _Options()
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from lingvo_gpipe import cluster
  from lingvo_gpipe.export import exporter
  from lingvo_gpipe.jobs import logdir, model_loader
  from lingvo_gpipe.train import checkpoint_files

  # The variables of a model that needs several devices fit here only.
  cluster.Local('cpu', 1)
  model = model_loader.Load(options)
  prefix = checkpoint_files.PrefixOf(_CHECKPOINT.value)
  if not prefix:
    train_dir = logdir.LogDir(options.logdir).train_dir
    prefix = checkpoint_files.Latest(train_dir)
    if prefix is None:
      raise user_error.UserError(
        f'{train_dir} holds no checkpoint to export; train first, or give the '
        '--logdir of a run'
      )
  info = exporter.Export(
    model, prefix=prefix, output=_OUTPUT.value, overwrite=_OVERWRITE.value
  )
  averaged = ', averaged weights' if info['averaged_weights'] else ''
  print(
    f'wrote {_OUTPUT.value}: {info["model"]}, step {info["global_step"]}'
    f'{averaged}'
  )
  for name, signature in info['signatures'].items():
    inputs, outputs = map(_Text, (signature['inputs'], signature['outputs']))
    print(f'{name}: {inputs} -> {outputs}')
  return 0


def _Options() -> job_flags.Options:
  """The flags; relative paths begin where the user is."""
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  if not FLAGS.model:
    raise user_error.UserError(
      '--model is missing: name the registered model that was trained, such as '
      '--model=image.digits.AmoebaNetDigits'
    )
  if not FLAGS.logdir and not _CHECKPOINT.value:
    raise user_error.UserError(
      '--logdir is missing: name the directory of the run, such as '
      '--logdir=/tmp/digits, or a --checkpoint'
    )
  if not _OUTPUT.value:
    raise user_error.UserError(
      '--output is missing: name a new directory for the SavedModel, such as '
      '--output=/tmp/digits_model'
    )
  return job_flags.Options(
    model=FLAGS.model,
    logdir=FLAGS.logdir or '',
    model_params_override=FLAGS.model_params_override,
    imports=tuple(FLAGS['import'].value),
    data_dir=FLAGS.data_dir,
  )


def _Text(specs: dict[str, dict]) -> str:
  """`images float32 [?, 8, 8, 1]`, for all tensors of a signature."""
  return ', '.join(
    f'{name} {spec["dtype"]} '
    f'[{", ".join("?" if n is None else str(n) for n in spec["shape"])}]'
    for name, spec in specs.items()
  )


if __name__ == '__main__':
  command.Run(Main)
