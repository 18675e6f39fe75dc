"""What --source names: where pairs of texts come from."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import catalogues, gettext_text, parallel_text

_FORMS = {
  'django': 'django',
  'vlc': 'vlc[:FOLDER]',
  'tsv': 'tsv:FILE_OR_FOLDER[,...]',
  'pair': 'pair:PREFIX.de,PREFIX.en[,...]',
  'tfds': 'tfds:NAME[/CONFIG]',
}


class Source(NamedTuple):
  """Opened parallel text.

  Attributes:
    pairs: may be read once.
    is_user_interface: whether these are texts of menus and messages, whose
      accelerators (E&xit) are no part of the language.
  """

  pairs: Iterator[parallel_text.Pair]
  is_user_interface: bool


def Open(source: str, *, data_dir: str = '', download: bool = False) -> Source:
  """Finds what is named, without reading it yet.

  Args:
    source: see _FORMS.
    data_dir: where TFDS has its data; '' is its default.
    download: whether TFDS may download what is not there.

  Returns:
    The Source.

  Raises:
    UserError: for a source that is not known, or is not there.
  """
  kind, colon, rest = source.partition(':')
  forms = ', '.join(_FORMS.values())
  if not kind:
    raise user_error.UserError(
      f'--source is missing; it is one of {forms}. --source=django needs no '
      'data of your own'
    )
  if kind not in _FORMS:
    raise user_error.UserError(
      f'--source={source} is not known{spelling.Hint(kind, _FORMS, "kinds")} '
      f'The forms are {forms}'
    )
  if kind == 'django' and colon or kind in ('tsv', 'pair', 'tfds') and not rest:
    raise user_error.UserError(f'--source={source}: write it {_FORMS[kind]}')
  if kind == 'django':
    return _Catalogues(catalogues.Django())
  if kind == 'vlc':
    return _Catalogues(catalogues.Vlc(rest))
  if kind == 'tfds':
    # Imports TensorFlow, which the other sources do without.
    from tasks.mt import tfds_text

    pairs = tfds_text.Read(rest, data_dir=data_dir, download=download)
    return Source(pairs, is_user_interface=False)
  names = [os.path.expanduser(x) for x in rest.split(',')]
  if kind == 'tsv':
    readers = [parallel_text.ReadTsv(x) for x in _TsvFiles(names)]
  else:
    file_pairs = parallel_text.PairUp(names)
    _CheckFiles(itertools.chain(*file_pairs))
    readers = [parallel_text.ReadFilePair(*x) for x in file_pairs]
  return Source(itertools.chain(*readers), is_user_interface=False)


def _Catalogues(found: list[catalogues.Catalogue]) -> Source:
  pairs = itertools.chain.from_iterable(
    gettext_text.ReadCatalogue(x.path, x.language) for x in found
  )
  return Source(pairs, is_user_interface=True)


def _TsvFiles(names: list[str]) -> list[str]:
  files = []
  for name in names:
    if os.path.isdir(name):
      inside = sorted(glob.glob(os.path.join(glob.escape(name), '*.tsv')))
      if not inside:
        raise user_error.UserError(
          f'--source=tsv:{name}: no *.tsv in this folder'
        )
      files += inside
    else:
      files.append(name)
  _CheckFiles(files)
  return files


def _CheckFiles(files: Iterator[str] | list[str]) -> None:
  for name in files:
    if not os.path.isfile(name):
      raise user_error.UserError(f'--source: there is no file {name}')
