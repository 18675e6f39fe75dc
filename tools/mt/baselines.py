"""Writes translations that need no model: copies, and a translation memory's.

  python -m tools.mt.baselines --data_dir=/tmp/django_mt --output=/tmp/baselines

The files are as a decoder's, test.copy.jsonl and test.memory.jsonl. Scoring
them beside a model's needs no files: see --baselines of tools/mt/score.
"""

from __future__ import annotations

import os
import time

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command

_DATA_DIR = flags.DEFINE_string(
  'data_dir', '', 'The data to translate: a folder of tools/mt/prepare.'
)
_OUTPUT = flags.DEFINE_string(
  'output', '', 'The folder to write to; it is made if it is not there.'
)
_SPLIT = flags.DEFINE_string('split', 'test', 'The split: test or dev.')
_DIRECTIONS = flags.DEFINE_string(
  'directions',
  '',
  'Pairs of languages such as de-fr,pt_BR-ja, which nothing was trained on. '
  'Empty: all from and into English.',
)


def Main() -> int:
  """The tool."""
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  for flag, what in (
    (_DATA_DIR, 'name the folder of tools/mt/prepare to translate'),
    (_OUTPUT, 'name the folder to write to'),
  ):
    if not flag.value:
      raise user_error.UserError(f'--{flag.name} is missing: {what}')
  # Only now: this imports TensorFlow, which --help and bad flags do without.
  quiet_import.ImportTensorFlow(quiet=True)
  from tasks.mt import (
    prepared_text,
    translation_baselines,
    translation_file,
    zero_shot,
  )

  data = prepared_text.PreparedText(_DATA_DIR.value)
  if _DIRECTIONS.value:
    rows = [
      row
      for direction in zero_shot.Directions(_DIRECTIONS.value)
      for row in zero_shot.Sentences(data, _SPLIT.value, *direction)
    ]
  else:
    rows = translation_baselines.Untranslated(data, _SPLIT.value)
  with user_error.Expected(OSError, prefix=f'--output={_OUTPUT.value}: '):
    os.makedirs(_OUTPUT.value, exist_ok=True)
    for name in translation_baselines.BASELINES:
      start = time.monotonic()
      path = os.path.join(_OUTPUT.value, f'{_SPLIT.value}.{name}.jsonl')
      translated = translation_baselines.Translate(name, data, rows)
      translation_file.Write(path, translated)
      print(
        f'wrote {len(translated):,} translations to {path} in '
        f'{time.monotonic() - start:.0f} s',
        flush=True,
      )
  return 0


if __name__ == '__main__':
  command.Run(Main)
