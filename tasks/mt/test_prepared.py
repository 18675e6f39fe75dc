"""Writes small prepared data, of invented languages."""

from __future__ import annotations

import functools
import itertools
import os

from tasks.mt import (
  parallel_text,
  split,
  test_translation_data,
  test_vocabulary,
  vocabulary,
  vocabulary_training,
)

LANGUAGES = ('de', 'pt_BR', 'ru')
_WORDS = ('open', 'closed', 'window', 'garden', 'river', 'bright', 'seven')
_CYRILLIC = str.maketrans(
  'abcdefghijklmnoprstuvwxyz', 'абкдефгхижклмнопрстувшыюз'
)


def English(number: int) -> str:
  """A text of three words, another one for each number below 210."""
  triples = itertools.permutations(_WORDS, 3)
  return ' '.join(next(itertools.islice(triples, number, None)))


def Translation(text: str, language: str) -> str:
  """What becomes of a text."""
  if language == 'ru':
    return text.translate(_CYRILLIC)
  suffix = {'de': 'ung', 'pt_BR': 'ção'}[language]
  return ' '.join(f'{x}{suffix}' for x in text.split())


@functools.cache
def _Vocabulary() -> vocabulary.Vocabulary:
  return vocabulary_training.Train(
    test_vocabulary.TEXTS, ('en', *LANGUAGES), vocab_size=313
  )


def Write(folder: str, directions: str = 'both') -> str:
  """Writes data of LANGUAGES.

  Training pairs are the English texts 0 to 39 (de), 29 (pt_BR) and 19 (ru),
  test has 100 to 109, of which ru lacks the first four; there is no dev.

  Args:
    folder: to be made.
    directions: see preparation_options.DIRECTIONS.

  Returns:
    The folder.
  """
  os.makedirs(folder)
  numbers = {
    'de': (range(40), range(100, 110)),
    'pt_BR': (range(30), range(100, 110)),
    'ru': (range(20), range(104, 110)),
  }
  by_language = {
    language: {
      name: [
        parallel_text.Pair(
          language, English(i), Translation(English(i), language)
        )
        for i in chosen
      ]
      for name, chosen in zip((split.TRAIN, split.TEST), sides, strict=True)
    }
    for language, sides in numbers.items()
  }
  test_translation_data.WriteFolder(
    folder, _Vocabulary(), by_language, directions=directions
  )
  return folder
