"""Keeps text from being taken for what only a vocabulary may say.

In a vocabulary `<2de>` is the tag that asks for German, and U+2581 a blank. In
text they are written with an escape, a code point that Unicode keeps free from
meaning, and a digit. Any text comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPE = '\ufdd0'
_BLANK = '\u2581'
# What is escaped -> the digit; the last one stands only before '2de>'.
_DIGITS = {_ESCAPE: '0', _BLANK: '1', '<': '2'}
_ESCAPED = re.compile(f'{_ESCAPE}([012])')
_CHARACTERS = {digit: character for character, digit in _DIGITS.items()}


class TextEscape:
  """Escapes and restores text.

  Args:
    tags: that must not occur in escaped text, such as `<2de>`.
  """

  def __init__(self, tags: Iterable[str]):
    tails = '|'.join(re.escape(x.removeprefix('<')) for x in tags)
    tag = f'|<(?={tails})' if tails else ''
    self._special = re.compile(f'[{_ESCAPE}{_BLANK}]{tag}')

  def Escape(self, text: str) -> str:
    """The text without tags and special blanks."""
    return self._special.sub(lambda x: _ESCAPE + _DIGITS[x.group()], text)

  def Restore(self, text: str) -> str:
    """What was escaped."""
    return _ESCAPED.sub(lambda x: _CHARACTERS[x.group(1)], text)
