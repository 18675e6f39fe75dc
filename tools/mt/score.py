"""Scores a file of translations, beside what needs no model.

  python -m tools.mt.score --data_dir=/tmp/django_mt --baselines \
      --translations=/tmp/logdir/decoder_test/decoded-00000600.jsonl

See docs/translation_scores.md.
"""

from __future__ import annotations

import os
import time
from typing import Any

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command

_DATA_DIR = flags.DEFINE_string(
  'data_dir', '', 'The data that was translated: a folder of tools/mt/prepare.'
)
_TRANSLATIONS = flags.DEFINE_string(
  'translations', '', 'The file of translations to score.'
)
_SPLIT = flags.DEFINE_string(
  'split', 'test', 'The split that was translated: test or dev.'
)
_BASELINES = flags.DEFINE_boolean(
  'baselines',
  False,
  'Compare with copying the source and with a translation memory.',
)
_BILINGUAL = flags.DEFINE_list(
  'bilingual',
  [],
  'Files of translations of the same sentences by models of one direction '
  'each, to compare with.',
)
_ON_TARGET = flags.DEFINE_boolean(
  'on_target',
  None,
  'Tell which translations are in the wanted language. Default: if there are '
  'directions without English.',
)
_AMOUNTS = flags.DEFINE_list(
  'amounts',
  [],
  'Two numbers of training pairs: languages with fewer than the first have a '
  'low amount of data, with the second or more a high one. Empty: thirds.',
)
_MIN_SENTENCES = flags.DEFINE_integer(
  'min_sentences',
  50,
  'Directions with fewer sentences are marked.',
  lower_bound=0,
)
_OUTPUT = flags.DEFINE_string(
  'output', '', 'A JSON file to write the scores to. Empty: none.'
)
_PLOT = flags.DEFINE_string(
  'plot',
  '',
  'A PNG file to write, of differences to the bilingual models, or without '
  'them to the translation memory. Empty: none.',
)


def Main() -> int:
  """The tool."""
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  _CheckFlags()
  amounts = _Amounts()
  # Before TensorFlow is imported: this finds most mistakes.
  from tasks.mt import translation_file

  rows = translation_file.Read(_TRANSLATIONS.value)
  bilingual = _ReadBilingual()
  quiet_import.ImportTensorFlow(quiet=True)
  from tasks.mt import prepared_text, scores, translation_baselines
  from tools.mt import score_report, translation_comparison

  data = prepared_text.PreparedText(_DATA_DIR.value)
  comparison = translation_comparison.Comparison(data, _SPLIT.value, amounts)
  sizes = comparison.Check(_TRANSLATIONS.value, rows)
  baselines: dict[str, Any] = {}
  if _BASELINES.value:
    start = time.monotonic()
    for name in translation_baselines.BASELINES:
      baselines[name] = translation_baselines.Translate(name, data, rows)
    print(f'made the baselines in {time.monotonic() - start:.0f} s', flush=True)
  if bilingual:
    comparison.Check(','.join(_BILINGUAL.value), bilingual)
    baselines['bilingual'] = bilingual
    if not {x.group for x in bilingual} & set(sizes):
      raise user_error.UserError(
        f'--bilingual={",".join(_BILINGUAL.value)} has no direction of '
        f'--translations={_TRANSLATIONS.value}; name files of the same'
      )
  on_target = _ON_TARGET.value
  if on_target is None:
    on_target = any(scores.Kind(x) == 'xx_xx' for x in rows)
  directions = comparison.Directions(
    rows, sizes, baselines, on_target=on_target
  )
  lines = score_report.Lines(directions, min_sentences=_MIN_SENTENCES.value)
  print('\n'.join(lines))
  untranslated = comparison.Untranslated(rows)
  if untranslated:
    print(
      f'missing: {len(untranslated)} directions are not translated at all: '
      + _Some(untranslated)
    )
  if _OUTPUT.value:
    _WriteJson(score_report.ToJson(directions), untranslated)
  if _PLOT.value:
    from tools.mt import score_picture

    with user_error.Expected(OSError, ValueError, prefix='--plot: '):
      score_picture.WritePng(
        directions,
        'bilingual' if bilingual else translation_baselines.MEMORY,
        _PLOT.value,
        min_sentences=_MIN_SENTENCES.value,
      )
  return 0


def _CheckFlags() -> None:
  for flag, what in (
    (_DATA_DIR, 'name the folder of tools/mt/prepare that was translated'),
    (_TRANSLATIONS, 'name a file that a decoder wrote'),
  ):
    if not flag.value:
      raise user_error.UserError(f'--{flag.name} is missing: {what}')
  if _PLOT.value and not (_BASELINES.value or _BILINGUAL.value):
    raise user_error.UserError(
      '--plot shows differences to a baseline: give --baselines or --bilingual'
    )
  for flag in (_OUTPUT, _PLOT):
    folder = os.path.dirname(flag.value) or os.curdir
    if flag.value and not os.path.isdir(folder):
      raise user_error.UserError(
        f'--{flag.name}={flag.value}: there is no folder {folder}'
      )


def _Amounts() -> list[int]:
  with user_error.Expected(ValueError, prefix='--amounts: '):
    return [int(x) for x in _AMOUNTS.value]


def _ReadBilingual() -> list[Any]:
  from tasks.mt import translation_file

  rows: list[Any] = []
  where: dict[str, str] = {}
  for path in _BILINGUAL.value:
    found = translation_file.Read(path)
    for group in {x.group for x in found}:
      if group in where:
        raise user_error.UserError(
          f'--bilingual: both {where[group]} and {path} have group {group}; '
          'name one of them'
        )
      where[group] = path
    rows += found
  return rows


def _Some(names: list[str], most: int = 10) -> str:
  more = f' and {len(names) - most} more' if len(names) > most else ''
  return ', '.join(names[:most]) + more


def _WriteJson(values: dict[str, Any], untranslated: list[str]) -> None:
  from lingvo_gpipe.train import summaries

  values = {
    'translations': _TRANSLATIONS.value,
    'data_dir': _DATA_DIR.value,
    'split': _SPLIT.value,
    **values,
    'untranslated': untranslated,
  }
  with user_error.Expected(OSError, prefix=f'--output={_OUTPUT.value}: '):
    summaries.WriteJson(_OUTPUT.value, values)


if __name__ == '__main__':
  command.Run(Main)
