"""Pairs of the compiled catalogues of gettext (.mo), which translate programs.

Python's gettext reads the translations and knows the rules of plurals. It keeps
no English plurals, so the original texts are read here:

  magic, revision, n, offset of n (length, offset) of originals, ...   uint32

An original is `text`, `context \\4 text`, or either with `\\0 plural` after it.
"""

from __future__ import annotations

import gettext
import struct
from collections.abc import Iterator
from typing import NamedTuple

from lingvo_gpipe import user_error
from tasks.mt import parallel_text

# Numbers whose form is the singular, and the general plural, in all languages;
# just above 1, many languages have forms of their own for two or for a few.
_ONE, _MANY = 1, 100


class _Original(NamedTuple):
  """An English text; context and plural are None where it has none."""

  context: str | None
  text: str
  plural: str | None


def ReadCatalogue(path: str, language: str) -> Iterator[parallel_text.Pair]:
  """Reads a catalogue whose originals are English.

  A text with a plural gives two pairs, the singular with the form for 1, and
  the plural with the form for 100. Contexts are left away: they are no part of
  what is shown. Texts without a translation are left out.

  Args:
    path: of the .mo file.
    language: of its translations.

  Yields:
    The pairs, in the order of the file.

  Raises:
    UserError: for a file that cannot be read, or is none.
  """
  # What Python's gettext and struct raise for other files.
  errors = OSError, struct.error, UnicodeDecodeError, LookupError, ValueError
  with user_error.Expected(*errors, prefix=f'{path} is no catalogue: '):
    with open(path, 'rb') as f:
      data = f.read()
      f.seek(0)
      catalogue = gettext.GNUTranslations(f)
    originals = _Originals(data, catalogue.charset() or 'ascii')
  catalogue.add_fallback(_Untranslated())
  for original in originals:
    for source, target in _Translations(catalogue, original):
      if source and target:
        yield parallel_text.Pair(language, source, target)


class _Untranslated(gettext.NullTranslations):
  """In place of English, which must not pass for a translation: nothing."""

  def gettext(self, message):
    return ''

  def ngettext(self, msgid1, msgid2, n):
    return ''

  def pgettext(self, context, message):
    return ''

  def npgettext(self, context, msgid1, msgid2, n):
    return ''


def _Originals(data: bytes, charset: str) -> list[_Original]:
  order = '<' if data[:4] == b'\xde\x12\x04\x95' else '>'
  count, table = struct.unpack_from(f'{order}2I', data, 8)
  originals = []
  for i in range(count):
    length, offset = struct.unpack_from(f'{order}2I', data, table + 8 * i)
    text = data[offset : offset + length].decode(charset)
    context, separator, text = text.rpartition('\4')
    text, has_plural, plural = text.partition('\0')
    originals.append(
      _Original(
        context if separator else None, text, plural if has_plural else None
      )
    )
  return originals


def _Translations(
  catalogue: gettext.GNUTranslations, original: _Original
) -> list[tuple[str, str]]:
  context, text, plural = original
  if not text:  # The head of the catalogue.
    return []
  if plural is None:
    if context is None:
      return [(text, catalogue.gettext(text))]
    return [(text, catalogue.pgettext(context, text))]
  if context is None:
    forms = [catalogue.ngettext(text, plural, n) for n in (_ONE, _MANY)]
  else:
    forms = [
      catalogue.npgettext(context, text, plural, n) for n in (_ONE, _MANY)
    ]
  return list(zip((text, plural), forms, strict=True))
