"""Catalogues of gettext for tests."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

POLISH = (
  'Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=3; plural='
  '(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\n'
)


def Write(
  path: str, messages: Mapping[str, str], head: str = POLISH, order: str = '<'
) -> None:
  """Writes a .mo file.

  Args:
    path: of the file; folders are made.
    messages: {original: translation}, with \\4 and \\0 as in such files.
    head: its description.
    order: of bytes, '<' or '>'.
  """
  texts = sorted((x.encode(), y.encode()) for x, y in messages.items())
  texts.insert(0, (b'', head.encode()))
  count = len(texts)
  tables, strings = b'', b''
  start = 28 + 16 * count
  for column in zip(*texts, strict=True):
    for text in column:
      tables += struct.pack(f'{order}2I', len(text), start + len(strings))
      strings += text + b'\0'
  numbers = 0x950412DE, 0, count, 28, 28 + 8 * count, 0, start
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'wb') as f:
    f.write(struct.pack(f'{order}7I', *numbers) + tables + strings)
