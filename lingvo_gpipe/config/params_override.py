"""Params changed from the command line: `--model_params_override`.

  net.num_partitions=4; train.learner.optimizer.momentum=0.8
  task.net.cells[-1].dropout_prob: 0.1

Assignments stand between semicolons or on lines, with `=` or `:`. Values are
those of text_values, with what is handy on a command line added: a word needs
no quotes where the old value is a string or None, and a list may stand for a
tuple.
"""

from __future__ import annotations

import enum
import re
from typing import Any

from lingvo_gpipe import hyperparams, nested_map
from lingvo_gpipe.config import hyperparams_text, statements, text_values

_WORD_RE = re.compile(r'[^\s\'"\[\](){}]+')
_REFERENCE_RE = re.compile(r'(type|enum|object)/')


def _Parse(text: str, old: Any) -> Any:
  """The value of `text`, which is to replace `old`."""
  if isinstance(old, enum.Enum) and text in type(old).__members__:
    return type(old)[text]
  if isinstance(old, bool) and text.lower() in ('true', 'false'):
    return text.lower() == 'true'
  is_word = _WORD_RE.fullmatch(text) and not _REFERENCE_RE.match(text)
  try:
    value = text_values.ParseValue(text)
  except ValueError:
    if is_word and (old is None or isinstance(old, str)):
      return text
    raise
  if isinstance(old, str) and is_word and text.isidentifier():
    # `inf` and `float32` are words, too, and no string can be True.
    return value if value is None or isinstance(value, bool) else text
  if text_values.IsSameNamedTuple(old, value):
    return value
  if isinstance(old, tuple) and isinstance(value, list):
    return tuple(value)
  if isinstance(old, list) and isinstance(value, tuple):
    return list(value)
  if isinstance(old, nested_map.NestedMap) and isinstance(value, dict):
    return nested_map.NestedMap.FromNestedDict(value)
  return value


def ApplyOverride(params: hyperparams.Params, text: str) -> hyperparams.Params:
  """Changes params as an override says: all of it or, on an error, nothing.

  Args:
    params: to change.
    text: assignments `path=value` or `path: value`, separated by semicolons
      or newlines; may be empty. The last one of several for a path wins.

  Returns:
    params.

  Raises:
    ValueError: for anything wrong with the text: the form, an unknown path, a
      value of the wrong type. It shows the assignment.
  """
  try:
    pieces = [
      statements.Statement(f'override {s.text.strip()!r}', s.text)
      for s in statements.Split(text, ends=';\n', comments=False)
    ]
  except ValueError as e:
    raise ValueError(
      f'override {text!r}: {e}; write for example '
      '"net.num_partitions=4; net.name=\'big\'"'
    ) from None
  if params.IsFrozen():
    raise TypeError('these params are frozen: override a Copy() of them')
  try:
    hyperparams_text.Apply(params, pieces, signs='=:', parse=_Parse)
  except (AttributeError, TypeError) as e:
    raise ValueError(str(e)) from None
  return params
