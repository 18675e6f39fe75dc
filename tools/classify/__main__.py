"""Classifies picture files by a SavedModel that tools/export wrote.

  python -m tools.classify --saved_model=/tmp/digits_model PICTURE...

A `-` among the pictures reads names of files from standard input, one in each
line. What cannot be read is reported on stderr, and the rest goes on. Exit
status: 0 done, 1 some files failed, 2 the command is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from absl import app, flags

from lingvo_gpipe import command_line, quiet_import, user_error

_SAVED_MODEL = flags.DEFINE_string(
  'saved_model', '', 'The directory that python -m tools.export wrote.'
)
_TOP = flags.DEFINE_integer(
  'top', 5, 'How many of the most likely classes are shown.', lower_bound=1
)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size',
  32,
  'How many pictures go through the network at once.',
  lower_bound=1,
)
_JSON = flags.DEFINE_boolean(
  'json', False, 'Print a JSON object in each line instead of text.'
)


def Main(argv: Sequence[str]) -> int:
  """The tool after its flags are parsed.

  Args:
    argv: the program's name, and names of files or '-'.

  Returns:
    The exit status.
  """
  try:
    return _Run(argv[1:])
  except user_error.UserError as e:
    return command_line.ShowError(e)


def _Run(names: Sequence[str]) -> int:
  if not _SAVED_MODEL.value:
    raise user_error.UserError(
      '--saved_model is missing: name the directory that python -m '
      'tools.export wrote'
    )
  if not names:
    raise user_error.UserError(
      'there are no pictures: name JPEG, PNG, BMP or GIF files after the '
      'flags, or give - to read names from standard input'
    )
  # Names of files need not be UTF-8; `bazel run` starts programs elsewhere and
  # leaves word of where it was.
  for stream in (sys.stdin, sys.stdout, sys.stderr):
    stream.reconfigure(errors='surrogateescape')
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from tools.classify import picture_files, report, saved_classifier

  classifier = saved_classifier.SavedClassifier(_SAVED_MODEL.value)
  names = _Names(names)
  line_of = report.JsonLine if _JSON.value else report.TextLine
  progress = report.Progress(len(names), _Complain)
  failed = done = 0
  for results in picture_files.Classify(classifier, names, _BATCH_SIZE.value):
    for result in results:
      if result.error:
        failed += 1
        _Complain(f'{result.file}: {result.error}')
      else:
        print(
          line_of(
            result.file,
            result.probabilities,
            classifier.class_names,
            _TOP.value,
          ),
          flush=True,
        )
    done += len(results)
    progress.Done(done)
  if failed:
    _Complain(f'{failed} of {len(names)} pictures failed')
  return 1 if failed else 0


def _Names(names: Sequence[str]) -> list[str]:
  """The names of all files, those of standard input in the place of '-'."""
  found = []
  for name in names:
    if name == '-':
      found += filter(None, (line.rstrip('\n') for line in sys.stdin))
    else:
      found.append(name)
  return found


def _Complain(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


if __name__ == '__main__':
  app.run(Main, flags_parser=command_line.ParseFlags)
