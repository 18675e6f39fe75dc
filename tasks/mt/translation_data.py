"""What the index of prepared data says of the groups that a model reads.

The format is that of record_files.py; docs/translation_data.md tells how data
is made. Nothing but the index is read here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import (
  data_folder,
  parallel_text,
  preparation_options,
  record_files,
  vocabulary,
)

_PREPARE = 'python -m tools.mt.prepare --source=django --output=DIR'


class Group(NamedTuple):
  """A direction, such as de (en->de) or de-en (de->en), in a split.

  Attributes:
    name: as record_files.Group gives it.
    source_language: such as en.
    target_language: such as de.
    shards: paths of the files of records.
    counts: how many records each shard has.
    text: path of the raw text; '' where there is none.
  """

  name: str
  source_language: str
  target_language: str
  shards: tuple[str, ...]
  counts: tuple[int, ...]
  text: str

  @property
  def size(self) -> int:
    """Number of records."""
    return sum(self.counts)


class TranslationData:
  """Prepared data.

  Args:
    data_dir: the folder.
    split: 'train', 'dev' or 'test'.
    languages: those beside English to take; none: all.
    directions: a key of preparation_options.DIRECTIONS, of those that there are
      which to take.

  Attributes:
    data_dir: as given.
    groups: those that have records, sorted by name.
    vocab_size: number of ids.
    num_tokens: ids of all sources and targets together.

  Raises:
    UserError: where the data, or what is wanted of it, is not there.
  """

  def __init__(
    self,
    data_dir: str,
    split: str,
    *,
    languages: Sequence[str] = (),
    directions: str = 'both',
  ):
    if not data_dir:
      raise user_error.UserError(
        f'no data for translation: make some by {_PREPARE}, which takes a '
        'minute, and set --data_dir=DIR'
      )
    self.data_dir = data_dir
    self._path = os.path.join(data_dir, preparation_options.INDEX_FILE)
    self._index = _ReadIndex(self._path)
    with user_error.Expected(
      KeyError, prefix=f'{self._path} is incomplete; it lacks '
    ):
      self.vocab_size: int = self._index['vocab_size']
      _CheckLanguages(self._path, languages, self._index['languages'])
      self.groups = tuple(self._Groups(split, languages, directions))
      tokens = self._index['tokens'][split]
      self.num_tokens = sum(sum(tokens[x.name]) for x in self.groups)
    if not self.groups:
      raise user_error.UserError(self._NothingText(split, languages))
    for path in (path for group in self.groups for path in group.shards):
      if not os.path.isfile(path):
        raise user_error.UserError(
          f'{path} is missing, though {preparation_options.INDEX_FILE} names '
          'it; copy the whole folder again, or prepare the data anew'
        )

  @functools.cached_property
  def vocab(self) -> vocabulary.Vocabulary:
    """The vocabulary; UserError where it is not the one of the records."""
    return data_folder.ReadVocabulary(self.data_dir, self._index)

  def _Groups(
    self, split: str, languages: Sequence[str], directions: str
  ) -> list[Group]:
    index, groups = self._index, []
    files = index['files'][split]
    texts = index['text'].get(split, {})
    for language in languages or index['languages']:
      for into_english in preparation_options.DIRECTIONS[directions]:
        name = record_files.Group(language, into_english=into_english)
        shards = files.get(name, ())
        if not shards:
          continue
        ends = (parallel_text.ENGLISH, language)
        groups.append(
          Group(
            name,
            *(reversed(ends) if into_english else ends),
            shards=tuple(os.path.join(self.data_dir, x) for x in shards),
            counts=tuple(index['counts'][x] for x in shards),
            text=os.path.join(self.data_dir, texts[name])
            if name in texts
            else '',
          )
        )
    return sorted(set(groups))

  def _NothingText(self, split: str, languages: Sequence[str]) -> str:
    available = [x for x, groups in self._index['files'].items() if groups]
    if split in available:
      wanted = ', '.join(languages) or 'the language'
      return (
        f'{self._path} has no {split} examples of {wanted} in the wanted '
        'directions; change the params languages and directions of the input, '
        'or prepare the data with others'
      )
    share = '' if split == 'train' else f' with --{split}_share above 0'
    return (
      f'{self._path} has no {split} examples, only those of '
      f'{", ".join(available) or "nothing"}; prepare the data anew{share}'
    )


def _ReadIndex(path: str) -> dict[str, Any]:
  folder = os.path.dirname(path)
  if not os.path.isfile(path):
    there = 'has no' if os.path.isdir(folder) else 'is no folder with a'
    raise user_error.UserError(
      f'--data_dir={folder} {there} {preparation_options.INDEX_FILE}: it must '
      f'be prepared data; make some by {_PREPARE}'
    )
  return data_folder.ReadIndex(
    path,
    lambda found: (
      f'{path} has format {found!r}, and this program reads '
      f'{record_files.FORMAT}; prepare the data anew by {_PREPARE}'
    ),
  )


def _CheckLanguages(
  path: str, languages: Sequence[str], known: Mapping[str, Any]
) -> None:
  for name in languages:
    if name not in known:
      raise user_error.UserError(
        f'{path} has no language {name!r} (param languages of the input)'
        + spelling.Hint(name, known, 'languages')
      )
