"""Directions that nothing was trained on, between two languages of the data.

Both have held-out translations of the same English texts, and all languages
have a text on the same side of the split, so nothing of it was trained on.
"""

from __future__ import annotations

from lingvo_gpipe import user_error
from tasks.mt import (
  parallel_text,
  prepared_text,
  translation_baselines,
  translation_file,
)


def Sentences(
  data: prepared_text.PreparedText,
  split: str,
  source_language: str,
  target_language: str,
) -> list[translation_file.Translation]:
  """The sentences of a direction, for translation and scoring.

  Args:
    data: with text of the split.
    split: dev or test.
    source_language: not English.
    target_language: another one, not English either.

  Returns:
    Translations with an empty `translation`; one for each English text that
    both languages have, in the order of the source language's.

  Raises:
    UserError: for languages that do not make such a direction.
  """
  english = parallel_text.ENGLISH
  where = f'direction {source_language}-{target_language}'
  for language in (source_language, target_language):
    data.CheckLanguage(language, where)
  if english in (source_language, target_language):
    raise user_error.UserError(
      f'{where} is trained on, so it is not zero-shot; name two languages '
      'other than English'
    )
  if source_language == target_language:
    raise user_error.UserError(f'{where} has the same language twice')
  pairs = prepared_text.Join(
    data.Sentences(split, english, source_language),
    data.Sentences(split, english, target_language),
  )
  return translation_baselines.Rows(pairs, source_language, target_language)


def Directions(text: str) -> list[tuple[str, str]]:
  """Parses directions such as de-fr.

  Args:
    text: source-target, several of them separated by commas.

  Returns:
    (source language, target language) of each.

  Raises:
    UserError: for what is no such list.
  """
  directions = []
  for word in text.split(','):
    source, dash, target = word.strip().partition('-')
    if not (source and dash and target) or '-' in target:
      raise user_error.UserError(
        f'{word!r} is no direction; expected is such as de-fr or pt_BR-ja'
      )
    directions.append((source, target))
  return directions
