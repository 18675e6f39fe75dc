"""From parallel text to tokenised files: all steps of tools/mt/prepare."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import (
  cleaning,
  data_writer,
  output_folder,
  parallel_text,
  preparation_options,
  record_files,
  sources,
  vocabulary,
  vocabulary_text,
  vocabulary_training,
)
from tasks.mt import split as splitting

Pair = parallel_text.Pair
_Sides = dict[str, list[Pair]]

# Of what a vocabulary is learnt from; more texts make it no better.
_VOCABULARY_TEXTS = 2_000_000
_SECONDS_BETWEEN_LINES = 5.0


def Prepare(
  options: preparation_options.Options,
  say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
  """Prepares data.

  Args:
    options: what to prepare.
    say: gets lines on how far it is.

  Returns:
    The index, see record_files.

  Raises:
    UserError: where the options or the data do not allow it.
  """
  preparation_options.Check(options)
  given = vocabulary.Vocabulary.Read(options.vocab) if options.vocab else None
  source = sources.Open(
    options.source, data_dir=options.data_dir, download=options.download
  )
  pairs = list(_WithProgress(source.pairs, say))
  if not pairs:
    raise user_error.UserError(f'--source={options.source} has no pairs')
  read = len(pairs)
  pairs = _OfLanguages(pairs, options.languages)
  unwanted = read - len(pairs)
  pairs, dropped = cleaning.Clean(
    pairs, is_user_interface=source.is_user_interface
  )
  say(f'kept {len(pairs):,} after cleaning; splitting')
  sides, leaks = splitting.Split(
    pairs,
    threshold=options.jaccard,
    dev_share=options.dev_share,
    test_share=options.test_share,
  )
  dropped += leaks
  if unwanted:
    dropped['not in --languages'] = unwanted
  by_language, left_out = _ByLanguage(sides, options.min_pairs)
  _CheckSplits(by_language, options)
  vocab = given or _TrainVocabulary(by_language, options, say)
  index = {
    'format': record_files.FORMAT,
    'vocab': record_files.VOCAB_FILE,
    'vocab_size': vocab.size,
    'vocab_sha256': vocab.sha256,
    'tags': _Tags(vocab, by_language, options),
    'directions': options.directions,
    'languages': {
      language: {split: len(x) for split, x in sides.items()}
      for language, sides in by_language.items()
    },
    'source': options.source,
    'jaccard': options.jaccard,
    'temperature': options.temperature,
    'read': read,
    'dropped': dict(dropped.most_common()),
    'left_out': left_out,
  }
  with output_folder.Writing(
    options.output,
    index=preparation_options.INDEX_FILE,
    overwrite=options.overwrite,
  ) as folder:
    with open(os.path.join(folder, record_files.VOCAB_FILE), 'wb') as f:
      f.write(vocab.model)
    writer = data_writer.DataWriter(
      folder, vocab, preparation_options.DIRECTIONS[options.directions]
    )
    writer.WriteAll(by_language, say)
    index |= writer.index
    record_files.WriteIndex(folder, index)
  return index


def _WithProgress(
  pairs: Iterable[Pair], say: Callable[[str], None]
) -> Iterator[Pair]:
  last, count = time.monotonic(), 0
  for pair in pairs:
    yield pair
    count += 1
    if count % 1000 == 0 and time.monotonic() - last > _SECONDS_BETWEEN_LINES:
      last = time.monotonic()
      say(f'read {count:,} pairs')
  say(f'read {count:,} pairs; cleaning')


def _OfLanguages(pairs: list[Pair], names: Sequence[str]) -> list[Pair]:
  if not names:
    return pairs
  wanted = {parallel_text.Language(x, '--languages') for x in names}
  present = {x.language for x in pairs}
  for name in sorted(wanted - present):
    raise user_error.UserError(
      f'--languages: the source has no {name!r}'
      + spelling.Hint(name, present, 'languages')
    )
  return [x for x in pairs if x.language in wanted]


def _ByLanguage(
  sides: _Sides, min_pairs: int
) -> tuple[dict[str, _Sides], dict[str, int]]:
  """({language: {split: pairs}}, {language left out: its training pairs})."""
  grouped = collections.defaultdict(lambda: {x: [] for x in splitting.SPLITS})
  for split, pairs in sides.items():
    for pair in pairs:
      grouped[pair.language][split].append(pair)
  kept, left_out = {}, {}
  for language, own_sides in sorted(grouped.items()):
    count = len(own_sides[splitting.TRAIN])
    if count < min_pairs:
      left_out[language] = count
    else:
      kept[language] = own_sides
  if not kept:
    most = max(left_out, key=left_out.get, default='none')
    raise user_error.UserError(
      f'no language has --min_pairs={min_pairs} pairs for training; {most} '
      f'has the most, {left_out.get(most, 0)}'
    )
  return kept, left_out


def _CheckSplits(
  by_language: Mapping[str, _Sides], options: preparation_options.Options
) -> None:
  for split, share in (
    (splitting.DEV, options.dev_share),
    (splitting.TEST, options.test_share),
  ):
    if share and not any(sides[split] for sides in by_language.values()):
      raise user_error.UserError(
        f'no pair falls into {split}: there are too few English texts, or too '
        f'many are alike, for --{split}_share={share}; raise it or --jaccard, '
        'or set it to 0 to do without'
      )


def _TrainVocabulary(
  by_language: Mapping[str, _Sides],
  options: preparation_options.Options,
  say: Callable[[str], None],
) -> vocabulary.Vocabulary:
  """Learns a vocabulary from the training pairs, English among them."""
  say('learning the vocabulary')
  training = {x: sides[splitting.TRAIN] for x, sides in by_language.items()}
  texts = {x: [pair.target for pair in y] for x, y in training.items()}
  texts[parallel_text.ENGLISH] = sorted(
    {pair.source for pairs in training.values() for pair in pairs}
  )
  counts = {x: len(pairs) for x, pairs in training.items()}
  counts[parallel_text.ENGLISH] = sum(counts.values())
  return vocabulary_training.Train(
    vocabulary_text.Resample(
      texts,
      counts,
      temperature=options.temperature,
      limit=_VOCABULARY_TEXTS,
    ),
    [parallel_text.ENGLISH, *training],
    vocab_size=options.vocab_size,
    character_coverage=options.character_coverage,
  )


def _Tags(
  vocab: vocabulary.Vocabulary,
  by_language: Mapping[str, _Sides],
  options: preparation_options.Options,
) -> dict[str, int]:
  """All tags of the vocabulary, those of the languages among them."""
  missing = {parallel_text.ENGLISH, *by_language} - vocab.tags.keys()
  if missing:
    raise user_error.UserError(
      f'--vocab={options.vocab} has no tags for {", ".join(sorted(missing))}; '
      'name those it has by --languages, or let a new vocabulary be learnt'
    )
  return vocab.tags
