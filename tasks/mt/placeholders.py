"""Placeholders in messages, such as %s, %(name)d or {0}."""

from __future__ import annotations

import collections
import re

# A lone % is a sign: "50% of", "50%ig". After %s and %d come suffixes: "%sni".
_PLACEHOLDER = re.compile(
  r"""
  %%
  | %\(\w+\)[-+#0]*\d*(?:\.\d+)?[a-zA-Z]            # %(name)s, Python
  | %(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?  # %s, %1$s, %-5.2f, %llu
    (?:hh|h|ll|l|z|j|t)?(?:[sd]|[iouxXeEfFgGcp](?![a-z]))
  | %\d(?!\d|\s*%)                                  # %1, Qt
  | \{[\w.!:]*\}                                    # {}, {0}, {name}, {n:d}
  """,
  re.VERBOSE,
)
_POSITION = re.compile(r'%\d+\$')


def Find(text: str) -> list[str]:
  """The placeholders of a text, in its order."""
  return _PLACEHOLDER.findall(text)


def Counts(text: str) -> collections.Counter[str]:
  """How often each placeholder is in a text.

  Translations may number what the original leaves in order: %2$s counts as %s.

  Args:
    text: of a message.

  Returns:
    {placeholder: number}.
  """
  return collections.Counter(_POSITION.sub('%', x) for x in Find(text))


def Without(text: str) -> str:
  """The text with its placeholders blanked out, of the same length."""
  return _PLACEHOLDER.sub(lambda match: ' ' * len(match.group()), text)
