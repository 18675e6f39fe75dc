"""Raw text of the sentences that are evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lingvo_gpipe import user_error
from tasks.mt import data_folder, translation_data, translation_file


@dataclasses.dataclass(frozen=True)
class Sentence:
  """A sentence and its translation by people.

  Attributes:
    group: the direction.
    source_language: such as en.
    target_language: such as de.
    index: place of the sentence in its group, from 0.
    source: the text.
    reference: its translation.
  """

  group: str
  source_language: str
  target_language: str
  index: int
  source: str
  reference: str

  def Translated(
    self, translation: str, score: float | None = None
  ) -> translation_file.Translation:
    """With what a system made of it."""
    return translation_file.Translation(
      **dataclasses.asdict(self), translation=translation, score=score
    )


def Read(
  groups: Sequence[translation_data.Group], limit: int = 0
) -> list[Sentence]:
  """Reads the text of some groups.

  Args:
    groups: which.
    limit: of each group, sentences to read, the first ones; 0: all.

  Returns:
    The sentences, in the order in which pair_table.Read reads the records.

  Raises:
    UserError: where there is no text, or it does not belong to the records.
  """
  return [x for group in groups for x in _OfGroup(group, limit)]


def _OfGroup(group: translation_data.Group, limit: int) -> list[Sentence]:
  if not group.text:
    raise user_error.UserError(
      f'the data of {group.name} has no raw text, as only dev and test have; '
      'decode one of these (param split of the input)'
    )
  rows = data_folder.ReadText(group.text)
  if len(rows) != group.size or any(len(row) != 2 for row in rows):
    raise user_error.UserError(
      f'{group.text} does not have a line `source <tab> target` for each of '
      f'the {group.size} records of its group; copy the whole folder again, or '
      'prepare the data anew'
    )
  return [
    Sentence(group.name, group.source_language, group.target_language, i, *row)
    for i, row in enumerate(rows[: limit or None])
  ]
