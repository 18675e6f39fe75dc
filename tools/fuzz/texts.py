"""Damaged text: of Params, and of overrides on the command line.

Whatever the text, parsing ends in one of two ways. It raises an error that is
declared, and nothing has changed; or the params have values that print as text
which parses to the same again. It never runs code and never imports anything.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from lingvo_gpipe import hyperparams
from lingvo_gpipe.config import params_override

# What text of params is made of, whole and in pieces.
_PIECES = (
  *('0', '-1', '1e309', '0x', '1_0', 'nan', 'inf', 'None', 'True', 'NaN'),
  *("'", '"', "'''", '\\', '\\n', '\n', '\r', '\t', ' ', '#', ';', ':', '='),
  *('[', ']', '{', '}', '(', ')', ',', '.', '..', '[0]', "['k']", '()', '\0'),
  *('a', 'name', 'child', 'child.size', 'items', 'cls', 'items[0]', 'é', '☃'),
  *(
    '__import__("os")',
    'open("/x")',
    '__class__',
    'lambda: 0',
    '1 if 1 else 2',
  ),
  *('os.system', 'type/os/system', 'dtype', 'float32', "b'x'", '9' * 30),
)


class _Thing:
  """Something with params, for `cls` lines."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define('size', 3, 'A number.')
    p.Define('name', 'x', 'A text.')
    return p


def MakeParams() -> hyperparams.Params:
  """Params with a value of every kind."""
  p = hyperparams.Params()
  p.Define('a', 1, 'An integer.')
  p.Define('ratio', 0.5, 'A number.')
  p.Define('name', 'it\'s "quoted"\nand long', 'A text.')
  p.Define('on', True, 'A switch.')
  p.Define('nothing', None, 'Not set.')
  p.Define('items', [1, 2.5, 'three', None], 'A list.')
  p.Define('pair', (1, 'b'), 'A tuple.')
  p.Define('table', {'k': 1, 'other key': [2]}, 'A dict.')
  p.Define('child', _Thing.Params(), 'Params.')
  p.Define('children', [_Thing.Params(), _Thing.Params()], 'A list of Params.')
  return p


def Damage(rng: random.Random, text: str) -> str:
  """Changes some places of a text."""
  for _ in range(rng.randint(1, 4)):
    i = rng.randint(0, len(text))
    j = min(len(text), i + rng.randint(0, 12))
    how = rng.randrange(5)
    if how == 0:
      text = text[:i] + text[j:]
    elif how == 1:
      text = text[:i] + rng.choice(_PIECES) + text[i:]
    elif how == 2:
      text = text[:i] + rng.choice(_PIECES) + text[j:]
    elif how == 3:
      text = text[:i] + text[i:j] * 2 + text[j:]
    elif text:
      k = rng.randrange(len(text))
      text = (
        text[:k]
        + chr(rng.choice([0, 10, 34, 39, 92, 200, 8364]))
        + text[k + 1 :]
      )
  return text


def Garbage(rng: random.Random) -> str:
  """Text of pieces in any order."""
  return ''.join(rng.choice(_PIECES) for _ in range(rng.randint(0, 12)))


def _CheckParsing(parse: Any, text: str, expected: tuple[type, ...]) -> None:
  params, before = MakeParams(), MakeParams()
  modules = set(sys.modules)
  try:
    parse(params, text)
  except expected as e:
    if not str(e):
      raise AssertionError(f'no message for {text!r}') from e
    if params != before:
      raise AssertionError(f'{text!r} changed something in spite of {e}') from e
  else:
    printed = params.ToText()
    again = MakeParams().FromText(printed)
    if again.ToText() != printed:
      raise AssertionError(f'{text!r} gives {printed!r}, which reads otherwise')
  if set(sys.modules) != modules:
    raise AssertionError(f'{text!r} imported {set(sys.modules) - modules}')


def ParamsText(rng: random.Random) -> None:
  """FromText of a damaged ToText."""
  text = MakeParams().ToText()
  if rng.random() < 0.3:
    text = Garbage(rng)
  else:
    text = Damage(rng, text)
  _CheckParsing(
    lambda params, text: params.FromText(text),
    text,
    (AttributeError, TypeError, ValueError),
  )


def Override(rng: random.Random) -> None:
  """--model_params_override with all that can go wrong."""
  good = "a=3;child.size=5;name='y';items=[1];table['k']=2;children[1].size: 7"
  text = Garbage(rng) if rng.random() < 0.3 else Damage(rng, good)
  _CheckParsing(params_override.ApplyOverride, text, (ValueError,))
