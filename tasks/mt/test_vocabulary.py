"""A small vocabulary for tests, learnt in a moment."""

from __future__ import annotations

import functools

from tasks.mt import vocabulary, vocabulary_training

LANGUAGES = ('en', 'de', 'pt_BR')
TEXTS = tuple(
  f'{subject} {verb} {thing}{end}'
  for subject in ('The cat', 'Die Katze', 'O gato', 'Nobody', 'Niemand')
  for verb in ('sees', 'sieht', 'compra', 'wants', 'möchte')
  for thing in ('the house', 'ein Haus', 'uma casa', 'two fish', 'zwei Fische')
  for end in ('.', '!', ' now')
)


@functools.cache
def Get(vocab_size: int = 312) -> vocabulary.Vocabulary:
  """The vocabulary of LANGUAGES."""
  return vocabulary_training.Train(TEXTS, LANGUAGES, vocab_size=vocab_size)
