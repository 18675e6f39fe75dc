"""Translates lines of text by a model, straight from a training checkpoint.

  echo 'Welcome back.' | python -m tools.mt.translate \\
      --model=mt.django.Base --logdir=/tmp/django --to=fr

Lines come from --input or standard input and go to --output or standard output,
one for each line. No data is needed: the run keeps its vocabulary. What
tools/export has written translates as well:

  python -m tools.mt.translate --saved_model=/tmp/django_model --to=fr
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from absl import flags

from lingvo_gpipe import atomic_file, quiet_import, user_error
from lingvo_gpipe.jobs import flags as job_flags
from tools.benchmarks import command

FLAGS = flags.FLAGS

# The trainer's, with the trainer's meaning.
for _name in (
  'model',
  'logdir',
  'worker_split_size',
  'model_params_override',
  'import',
):
  flags.declare_key_flag(_name)

_TO = flags.DEFINE_string(
  'to', '', 'The language to translate into, such as fr.'
)
_SAVED_MODEL = flags.DEFINE_string(
  'saved_model',
  '',
  'A directory that tools/export has written, instead of --model and --logdir.',
)
_SENTENCES = flags.DEFINE_string(
  'sentences',
  '',
  'A file of translations, such as tools/mt/baselines writes, in place of --to '
  'and --input: its sources are translated, each into its own language, and '
  '--output is such a file, too.',
)
_INPUT = flags.DEFINE_string(
  'input', '', 'A file of lines in UTF-8. Empty: standard input.'
)
_OUTPUT = flags.DEFINE_string(
  'output', '', 'The file to write. Empty: standard output.'
)
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint',
  '',
  'The checkpoint to translate with, such as DIR/train/ckpt-00000600. Empty: '
  'the best one of --logdir, or the newest where none is the best.',
)
_AVERAGE = flags.DEFINE_integer(
  'average_checkpoints',
  1,
  'Translate with the mean of the weights of so many newest checkpoints.',
  lower_bound=1,
)
_BEAM_SIZE = flags.DEFINE_integer(
  'beam_size',
  0,
  'Translations that are followed at once; 1 takes the likeliest token each '
  'time. 0: what the model says.',
  lower_bound=0,
)
_LENGTH_PENALTY = flags.DEFINE_float(
  'length_penalty',
  None,
  'The higher, the longer the translations. Empty: what the model says.',
  lower_bound=0.0,
)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size', 32, 'Lines that are translated at once.', lower_bound=1
)
_MAX_TOKENS = flags.DEFINE_integer(
  'max_tokens', 512, 'Tokens that a line may have at most.', lower_bound=2
)


def Main() -> int:
  """The tool."""
  options = _Options()
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from tasks.mt import text_translator, translation_file
  from tools.mt import translation_model

  sentences = []
  if _SENTENCES.value:
    sentences = translation_file.Read(_SENTENCES.value)
  if _SAVED_MODEL.value:
    model = translation_model.FromSavedModel(_SAVED_MODEL.value)
  else:
    model = translation_model.FromRun(
      options,
      translation_model.Search(
        _CHECKPOINT.value,
        _AVERAGE.value,
        _BEAM_SIZE.value,
        _LENGTH_PENALTY.value,
      ),
    )
  translator = text_translator.TextTranslator(
    model.vocab,
    model.translate,
    batch_size=_BATCH_SIZE.value,
    max_tokens=_MAX_TOKENS.value,
  )
  if _SENTENCES.value:
    with user_error.Expected(OSError, prefix=f'--output={_OUTPUT.value}: '):
      translation_file.Write(_OUTPUT.value, translator.Sentences(sentences))
    return 0
  with _Lines() as lines, _Writer() as write:
    for line in translator.Lines(lines, _TO.value):
      write(line)
  return 0


def _Options() -> job_flags.Options:
  """The flags; relative paths begin where the user is."""
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  examples = {'model': 'mt.django.Base', 'logdir': '/tmp/django', 'to': 'fr'}
  for name, example in examples.items():
    given = FLAGS[name].value
    if _SENTENCES.value and name == 'to':
      if given:
        raise user_error.UserError(
          f'--to={given} has no part in --sentences={_SENTENCES.value}, which '
          'says of each sentence what it is to be; give one of the two'
        )
    elif _SAVED_MODEL.value and name != 'to':
      if given:
        raise user_error.UserError(
          f'--{name}={given} has no part in --saved_model='
          f'{_SAVED_MODEL.value}; give one of the two'
        )
    elif not given:
      raise user_error.UserError(
        f'--{name} is missing; give, for example, --{name}={example}'
      )
  if _CHECKPOINT.value and _AVERAGE.value > 1:
    raise user_error.UserError(
      f'--checkpoint={_CHECKPOINT.value} is one, but --average_checkpoints='
      f'{_AVERAGE.value}; give one of the two'
    )
  if _SENTENCES.value and not _OUTPUT.value:
    raise user_error.UserError(
      f'--sentences={_SENTENCES.value} needs the name of another file, --output'
    )
  if _INPUT.value and not os.path.isfile(_INPUT.value):
    raise user_error.UserError(f'--input={_INPUT.value}: there is no such file')
  return job_flags.Options(
    model=FLAGS.model or '',
    logdir=FLAGS.logdir or '',
    num_partitions=FLAGS.worker_split_size,
    model_params_override=FLAGS.model_params_override,
    imports=tuple(FLAGS['import'].value),
  )


@contextlib.contextmanager
def _Lines() -> Iterator[Iterator[str]]:
  """The lines of --input, without their ends."""
  with contextlib.ExitStack() as stack:
    if _INPUT.value:
      stream = stack.enter_context(
        open(_INPUT.value, encoding='utf-8', newline='\n')
      )
    else:
      stream = sys.stdin
      stream.reconfigure(encoding='utf-8', newline='\n')
    with user_error.Expected(
      UnicodeDecodeError, prefix=f'{_INPUT.value or "standard input"}: '
    ):
      yield (line.rstrip('\r\n') for line in stream)


@contextlib.contextmanager
def _Writer() -> Iterator[Callable[[str], None]]:
  """Writes lines to --output, which appears whole, or standard output."""
  path = _OUTPUT.value
  if not path:
    sys.stdout.reconfigure(encoding='utf-8')
    yield lambda line: print(line, flush=True)
    return
  with (
    user_error.Expected(OSError, prefix=f'--output={path}: '),
    atomic_file.Writing(path) as f,
  ):
    yield lambda line: f.write(f'{line}\n')


if __name__ == '__main__':
  command.Run(Main)
