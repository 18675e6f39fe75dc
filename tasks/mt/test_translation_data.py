"""Writes small prepared data, for tests."""

from __future__ import annotations

import random

from tasks.mt import (
  data_writer,
  parallel_text,
  preparation_options,
  record_files,
  test_vocabulary,
)

SIZES = {
  'de': {'train': 83, 'dev': 9, 'test': 13},
  'pt_BR': {'train': 11, 'dev': 0, 'test': 4},
}
_WORDS = ('The', 'cat', 'sees', 'two', 'Fische', 'uma', 'casa', 'möchte')


def Write(folder, sizes=None, *, max_words=12, directions='both', seed=0):
  """Writes a folder; returns its index."""
  sizes = sizes or SIZES
  draw = random.Random(seed)

  def _Text():
    return ' '.join(draw.choices(_WORDS, k=draw.randint(1, max_words)))

  by_language = {
    language: {
      split: [
        parallel_text.Pair(language, f'{i} {_Text()}', f'{_Text()} {i}')
        for i in range(count)
      ]
      for split, count in own.items()
    }
    for language, own in sizes.items()
  }
  return WriteFolder(
    folder, test_vocabulary.Get(), by_language, directions=directions
  )


def WriteFolder(folder, vocab, by_language, *, directions):
  """Writes {language: {split: pairs}} as tools/mt/prepare does.

  Returns the index.
  """
  writer = data_writer.DataWriter(
    folder, vocab, preparation_options.DIRECTIONS[directions]
  )
  writer.WriteAll(by_language, lambda line: None)
  with open(f'{folder}/{record_files.VOCAB_FILE}', 'wb') as f:
    f.write(vocab.model)
  index = {
    'format': record_files.FORMAT,
    'vocab': record_files.VOCAB_FILE,
    'vocab_size': vocab.size,
    'vocab_sha256': vocab.sha256,
    'tags': vocab.tags,
    'directions': directions,
    'languages': {
      language: {split: len(pairs) for split, pairs in own.items()}
      for language, own in by_language.items()
    },
  } | writer.index
  record_files.WriteIndex(folder, index)
  return index
