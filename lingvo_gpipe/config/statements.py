"""Text cut into statements `path : value`, and sorted into a tree by path.

Values stay text here: what they mean depends on where they go
(hyperparams_text, params_override).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from lingvo_gpipe.config import key_path

_STATEMENT_RE = re.compile(
  rf'\s*({key_path.PATTERN})\s*([:=])\s*(.*?)\s*', re.DOTALL
)
# Strings, brackets, ends of statements, stray quotes.
_TOKEN = (
  r'(?P<string>"""(?:\\.|[^\\])*?"""'
  r"|'''(?:\\.|[^\\])*?'''"
  r"|'(?:\\.|[^'\\\n])*'"
  r'|"(?:\\.|[^"\\\n])*")'
  r'|(?P<open>[\[({])|(?P<close>[\])}])'
  r"""|(?P<end>[;\n])|(?P<quote>['"])"""
)
_TOKEN_RE = re.compile(_TOKEN, re.DOTALL)
_TOKEN_OR_COMMENT_RE = re.compile(rf'{_TOKEN}|(?P<comment>\#[^\n]*)', re.DOTALL)
# What most lines look like, to read long texts fast.
_PLAIN_LINE_RE = re.compile(
  r'[^\'"#;\[\](){}\n]*+(?:\[\d+\][^\'"#;\[\](){}\n]*+)*+'
  r"(?:'[^'\\\n]*+')?+[ \t]*+\n"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Statement:
  """A piece of text that may set a value.

  Attributes:
    where: for messages, for example 'line 3'.
    text: without comments.
  """

  where: str
  text: str


def Split(text: str, ends: str, comments: bool) -> Iterator[Statement]:
  """Cuts a text into statements, not inside strings and brackets.

  Args:
    text: any number of statements.
    ends: the characters that end one: '\\n', or ';\\n'.
    comments: whether '#' starts a comment.

  Yields:
    Those that are not blank.

  Raises:
    ValueError: for a quote or a bracket that is never closed.
  """
  line, start = 1, 0
  while start < len(text):
    plain = _PLAIN_LINE_RE.match(text, start)
    if plain:
      body, end, num_lines = plain.group(), plain.end(), 1
    else:
      body, end = _NextStatement(text, start, line, ends, comments)
      num_lines = text.count('\n', start, end)
    if body.strip():
      yield Statement(f'line {line}', body)
    line += num_lines
    start = end


def _NextStatement(
  text: str, start: int, line: int, ends: str, comments: bool
) -> tuple[str, int]:
  """The statement that begins at `start`, and where the next one does."""
  kept, opened = [], []
  token_re = _TOKEN_OR_COMMENT_RE if comments else _TOKEN_RE
  for match in token_re.finditer(text, start):
    kind, token = match.lastgroup, match.group()
    if kind == 'open':
      opened.append((token, line))
    elif kind == 'close':
      del opened[-1:]
    elif kind == 'comment':
      kept.append(text[start : match.start()])
      start = match.end()
    elif kind == 'quote':
      raise ValueError(f'line {line}: the quote {token} is never closed')
    elif kind == 'end' and token in ends and not opened:
      return ''.join([*kept, text[start : match.start()]]), match.end()
    line += token.count('\n')
  if opened:
    token, line = opened[0]
    raise ValueError(f'line {line}: the bracket {token} is never closed')
  return ''.join([*kept, text[start:]]), len(text)


class Node:
  """A place in the tree of statements: a text, or places below, or both."""

  __slots__ = ('text', 'where', 'below')

  def __init__(self):
    self.text: str | None = None
    self.where = ''
    self.below: dict[str | int, Node] = {}


def Tree(statements: list[Statement], signs: str) -> Node:
  """Sorts statements into a tree by the steps of their paths.

  Args:
    statements: those of Split().
    signs: what may stand between a path and its value: ':' or ':='.

  Returns:
    The root.

  Raises:
    ValueError: for a statement that is none.
  """
  root = Node()
  nodes = {}  # By path; lines come in groups with the same beginning.
  for statement in statements:
    match = _STATEMENT_RE.fullmatch(statement.text)
    if not match or match.group(2) not in signs:
      text = repr(statement.text.strip())
      where = statement.where
      raise ValueError(
        f'{where if text in where else f"{where}: {text}"} is not of the form '
        f'`path {signs[0]} value`, for example `net.cells[0].name {signs[0]} '
        "'stem'`"
      )
    path, unused_sign, text = match.groups()
    base, unused_dot, name = path.rpartition('.')
    if base in nodes and name.isidentifier():
      node = nodes[base].below.setdefault(name, Node())
    else:
      steps = key_path.Parse(path)
      node = root
      for i, step in enumerate(steps):
        node.where = node.where or statement.where
        node = node.below.setdefault(step, Node())
        if i + 2 == len(steps) and name.isidentifier():
          nodes[base] = node
    node.text, node.where = text, statement.where  # The last one wins.
  return root
