"""Prepares the data of multilingual translation: from text to record files.

  python -m tools.mt.prepare --source=django --output=/tmp/django_mt

Sources are the catalogues of Django (94 languages) or VLC, files of your own,
and sets of TFDS; see docs/translation_data.md.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from absl import flags

from lingvo_gpipe import quiet_import, text_table, user_error
from tasks.mt import preparation_options
from tools.benchmarks import command

FLAGS = flags.FLAGS

_SOURCE = flags.DEFINE_string(
  'source',
  '',
  'Where pairs come from: django; vlc, or vlc:FOLDER of its catalogues; '
  'tsv:FILE_OR_FOLDER,... of lines source<TAB>target[<TAB>language]; '
  'pair:PREFIX.de,PREFIX.en,...; tfds:NAME[/CONFIG].',
)
_OUTPUT = flags.DEFINE_string(
  'output', '', 'The folder to write. It must be new, or empty.'
)
_VOCAB_SIZE = flags.DEFINE_integer(
  'vocab_size', 8000, 'Ids of the vocabulary that is learnt.'
)
_VOCAB = flags.DEFINE_string(
  'vocab',
  '',
  'A vocabulary to use, such as vocab.model of other prepared data. Empty: one '
  'is learnt.',
)
_DIRECTIONS = flags.DEFINE_string(
  'directions',
  'both',
  'en-xx translates from English, xx-en into English, both does both.',
)
_LANGUAGES = flags.DEFINE_list(
  'languages', [], 'Languages to take. Empty: all that there are.'
)
_MIN_PAIRS = flags.DEFINE_integer(
  'min_pairs', 100, 'Languages with fewer pairs for training are left out.'
)
_TEMPERATURE = flags.DEFINE_float(
  'temperature',
  5.0,
  'Of the text that the vocabulary is learnt from: a language with n pairs has '
  'a share proportional to n^(1/temperature).',
)
_JACCARD = flags.DEFINE_float(
  'jaccard',
  0.6,
  'English texts that share so much of their words are on the same side of the '
  'split; 1: only texts of the same words.',
)
_DEV_SHARE = flags.DEFINE_float(
  'dev_share', 0.05, 'Share of dev; data that comes with a dev part keeps it.'
)
_TEST_SHARE = flags.DEFINE_float(
  'test_share', 0.1, 'Share of test; data that comes with a test part keeps it.'
)
_CHARACTER_COVERAGE = flags.DEFINE_float(
  'character_coverage',
  0.9995,
  'Share of the characters that get pieces; the rarest are spelled in bytes.',
)
_DATA_DIR = flags.DEFINE_string(
  'data_dir',
  '',
  'Where TFDS has its data. Empty: $TFDS_DATA_DIR or ~/tensorflow_datasets.',
)
_DOWNLOAD = flags.DEFINE_boolean(
  'download', False, 'Let TFDS download what is not there.'
)
_OVERWRITE = flags.DEFINE_boolean(
  'overwrite', False, 'Replace the data that --output holds.'
)


def Main() -> int:
  """The tool."""
  # As an exception, so that no half-written folder stays.
  signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  if _VOCAB.value and FLAGS['vocab_size'].present:
    raise user_error.UserError(
      f'--vocab={_VOCAB.value} has its own size; leave --vocab_size away'
    )
  start = time.monotonic()
  options = preparation_options.Options(
    source=_SOURCE.value,
    output=_OUTPUT.value,
    vocab_size=_VOCAB_SIZE.value,
    vocab=_VOCAB.value,
    directions=_DIRECTIONS.value,
    languages=_LANGUAGES.value,
    min_pairs=_MIN_PAIRS.value,
    temperature=_TEMPERATURE.value,
    jaccard=_JACCARD.value,
    dev_share=_DEV_SHARE.value,
    test_share=_TEST_SHARE.value,
    character_coverage=_CHARACTER_COVERAGE.value,
    data_dir=_DATA_DIR.value,
    download=_DOWNLOAD.value,
    overwrite=_OVERWRITE.value,
  )
  preparation_options.Check(options)
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: this imports TensorFlow, which --help and bad flags do without.
  from tasks.mt import preparation

  index = preparation.Prepare(options, lambda line: print(line, flush=True))
  for line in Report(index):
    print(line)
  print(f'wrote {_OUTPUT.value} in {time.monotonic() - start:.0f} s')
  return 0


def Report(index: dict[str, Any]) -> list[str]:
  """What was prepared, and what was dropped, as lines.

  Args:
    index: see tasks/mt/record_files.py.

  Returns:
    A table of languages, and lines of sums.
  """
  splits = list(index['files'])
  rows = [['language', *splits, 'train ids']]
  for language, sizes in index['languages'].items():
    ids = [
      sum(x)
      for group, x in index['tokens']['train'].items()
      if group.split('-')[0] == language
    ]
    rows.append([language, *(f'{sizes[x]:,}' for x in splits), f'{sum(ids):,}'])
  lines = text_table.Aligned(rows, left={0})
  lines.append(f'read: {index["read"]:,} pairs')
  for reason, count in index['dropped'].items():
    lines.append(f'dropped, {reason}: {count:,}')
  if index['left_out']:
    names = (f'{x} ({n})' for x, n in index['left_out'].items())
    lines.append(f'left out, too few pairs for training: {", ".join(names)}')
  lines.append(
    f'languages: {len(index["languages"])} and English, directions: '
    f'{index["directions"]}'
  )
  for split in splits:
    pairs = sum(x[split] for x in index['languages'].values())
    source, target = (
      sum(x[i] for x in index['tokens'][split].values()) for i in (0, 1)
    )
    lines.append(
      f'{split}: {pairs:,} pairs, {source:,} source ids, {target:,} target ids'
    )
  lines.append(f'vocabulary: {index["vocab_size"]:,} ids')
  return lines


if __name__ == '__main__':
  command.Run(Main)
