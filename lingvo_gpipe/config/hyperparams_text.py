"""Params as text: one `path : value` line each, read back exactly.

  cells : list[2]
  cells[0].cls : type/lingvo_gpipe.layers.conv/Conv2D
  cells[0].filters : 64
  ...
  name : 'net'

Lines are sorted by path. Containers that hold Params are given by a line with
their size or keys (`list[2]`, `tuple[1]`, `dict['a']`, `NestedMap['a']`) and
the lines of their elements; other values stand on one line (text_values). New
Params, of a longer list or in place of None, are made by the `Params()` of the
class on their `cls` line.

Reading plans every change first and applies them together, so that an error
leaves the Params as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from lingvo_gpipe import nested_map
from lingvo_gpipe.config import key_path, spelling, statements, text_values

FormatValue = text_values.FormatValue

_HEADER_RE = re.compile(r'(list|tuple|dict|NestedMap)(\[.*\])', re.DOTALL)
_KINDS = {
  'list': list,
  'tuple': tuple,
  'dict': dict,
  'NestedMap': nested_map.NestedMap,
}
_MISSING = object()


# Writing.


def _HoldsParams(value: Any) -> bool:
  if text_values.IsParams(value):
    return True
  return key_path.IsContainer(value) and any(
    _HoldsParams(child) for unused_key, child in key_path.Elements(value)
  )


def Items(params: Any) -> Iterator[tuple[str, str]]:
  """(path, text of the value) of every line, sorted by path."""

  def _Emit(path, value):
    if text_values.IsParams(value):
      for name in value.GetKeys():
        yield from _Emit(key_path.Field(path, name), getattr(value, name))
      return
    if not _HoldsParams(value):
      yield path, FormatValue(value)
      return
    if isinstance(value, dict):
      is_map = isinstance(value, nested_map.NestedMap)
      kind = 'NestedMap' if is_map else 'dict'
      keys = ', '.join(map(FormatValue, value))
      yield path, f'{kind}[{keys}]'
    else:
      kind = 'list' if isinstance(value, list) else 'tuple'
      yield path, f'{kind}[{len(value)}]'
    for key, child in key_path.Elements(value):
      yield from _Emit(key_path.Element(value, key, path), child)

  return _Emit('', params)


def ToText(params: Any) -> str:
  """The text of a Params; see the module's docstring."""
  return ''.join(f'{path} : {text}\n' for path, text in Items(params))


def TextDiff(params: Any, other: Any) -> str:
  """What differs between two Params, one line a path, '' where they are equal.

  Args:
    params: the old ones.
    other: the new ones.

  Returns:
    Lines `path : old -> new`, `- path : old` and `+ path : new`.
  """
  if params == other:
    return ''
  old, new = dict(Items(params)), dict(Items(other))
  lines = []
  for path in {**old, **new}:
    if path not in new:
      lines.append(f'- {path} : {old[path]}')
    elif path not in old:
      lines.append(f'+ {path} : {new[path]}')
    elif old[path] != new[path]:
      lines.append(f'{path} : {old[path]} -> {new[path]}')
  if not lines:
    lines.append('(they differ in a way that their text does not show)')
  return '\n'.join(lines) + '\n'


# Reading.


def _ParseStrictly(text: str, unused_old: Any) -> Any:
  return text_values.ParseValue(text)


class _Planner:
  """Finds the changes that a tree of statements asks for."""

  def __init__(self, parse: Callable[[str, Any], Any]):
    self._parse = parse
    self._changes: list[tuple[Any, str, Any]] = []
    self._cache: dict[str, Any] = {}

  def Apply(self, params: Any, root: statements.Node) -> None:
    self._Params(params, root, '')
    for target, name, value in self._changes:
      setattr(target, name, value)

  def _Value(self, old: Any, node: statements.Node, path: str) -> Any:
    """The value that `node` makes of `old`."""
    if node.text is None:
      return self._Inside(old, node, path)
    header = node.text[-1:] == ']' and _HEADER_RE.fullmatch(node.text)
    if header:
      return self._Container(old, node, path, *header.groups())
    if node.below:
      other = next(iter(node.below.values()))
      raise ValueError(
        f'{node.where} sets {path!r} as a whole and {other.where} something '
        'inside it; keep one of them'
      )
    return self._Leaf(old, node, path)

  def _Leaf(self, old: Any, node: statements.Node, path: str) -> Any:
    old = None if old is _MISSING else old
    try:
      new = self._parse(node.text, old)
    except ValueError as e:
      # What has no readable text may still stay what it is.
      if old is not None and FormatValue(old) == node.text:
        return old
      raise ValueError(f'{node.where}: {path!r}: {e}') from None
    problem = text_values.TypeProblem(old, new)
    if problem:
      raise TypeError(f'{node.where}: {path!r} {problem}')
    if text_values.IsSameNamedTuple(old, new):
      return type(old)(*new)
    return new

  def _Container(
    self, old: Any, node: statements.Node, path: str, kind: str, size: str
  ) -> Any:
    """The list, tuple, dict or NestedMap of a line such as `list[2]`."""
    try:
      keys = text_values.ParseValue(size)
      if kind in ('list', 'tuple'):
        (length,) = keys
        if type(length) is not int or length < 0:
          raise ValueError
        keys = range(length)
      empty = _KINDS[kind](dict.fromkeys(keys) if kind[0] in 'dN' else ())
    except (TypeError, ValueError):
      raise ValueError(
        f'{node.where}: {path!r}: {node.text!r} is none of list[size], '
        "tuple[size], dict['key', ...], NestedMap['key', ...]"
      ) from None
    problem = old is not _MISSING and text_values.TypeProblem(old, empty)
    if problem:
      raise TypeError(f'{node.where}: {path!r} {problem}')
    previous = {}
    if key_path.IsContainer(old):
      previous = dict(old if isinstance(old, dict) else enumerate(old))
    unknown = [step for step in node.below if step not in keys]
    if unknown:
      raise ValueError(
        f'{node.below[unknown[0]].where}: {path}[{unknown[0]!r}] is outside '
        f'{node.text} of {node.where}'
      )
    values = {}
    for key in keys:
      where = key_path.Element(empty, key, path)
      before = previous.get(key, _MISSING)
      if key in node.below:
        values[key] = self._NewElement(before, node.below[key], where)
      elif before is not _MISSING:
        values[key] = before
      else:
        raise ValueError(
          f'{node.where}: {where!r} is new and no line gives it a value'
        )
    if isinstance(empty, dict):
      empty.update(values)
      return empty
    new = type(empty)(values.values())
    return type(old)(*new) if text_values.IsSameNamedTuple(old, new) else new

  def _NewElement(self, old: Any, node: statements.Node, path: str) -> Any:
    """An element of a container that is given anew: its type is free."""
    header = _HEADER_RE.fullmatch(node.text or '')
    if header:
      is_dict = issubclass(_KINDS[header.group(1)], dict)
      fits = key_path.IsContainer(old) and isinstance(old, dict) == is_dict
    elif node.text is None:
      fits = text_values.IsParams(old) or (
        key_path.IsContainer(old) and 'cls' not in node.below
      )
    else:
      fits = FormatValue(old) == node.text
    return self._Value(old if fits else _MISSING, node, path)

  def _Inside(self, old: Any, node: statements.Node, path: str) -> Any:
    """`old` with changes below it only."""
    cls_node = node.below.get('cls')
    if text_values.IsParams(old):
      owner = getattr(old, 'cls', None) if 'cls' in old else None
      if cls_node and cls_node.text not in (None, 'None', FormatValue(owner)):
        old = self._Construct(cls_node, path)
      self._Params(old, node, path)
      return old
    if old is None or old is _MISSING:
      if not cls_node or cls_node.text is None:
        what = 'new' if old is _MISSING else 'None'
        raise ValueError(
          f'{node.where}: {path!r} is {what}; to make it Params add the line '
          f'`{path}.cls : type/module/Name` with their class'
        )
      new = self._Construct(cls_node, path)
      self._Params(new, node, path)
      return new
    if not key_path.IsContainer(old):
      step = next(iter(node.below))
      raise AttributeError(
        f'{node.where}: {path!r} is {FormatValue(old)}: {step!r} is not '
        'inside it'
      )
    values = dict(key_path.Elements(old))
    for step, below in node.below.items():
      try:
        before = key_path.Lookup(old, step, path)
      except key_path.MissingKeyError as e:
        raise AttributeError(f'{below.where}: {e}') from None
      if isinstance(step, int) and step < 0 and not isinstance(old, dict):
        step += len(old)
      if isinstance(step, int) and key_path.IsNamedTuple(old):
        step = type(old)._fields[step]
      values[step] = self._Value(
        before, below, key_path.Element(old, step, path)
      )
    if all(values[key] is value for key, value in key_path.Elements(old)):
      return old
    return key_path.Rebuild(old, list(values.values()))

  def _Params(self, params: Any, node: statements.Node, path: str) -> None:
    """Plans the changes of a Params."""
    if node.below and params.IsFrozen():
      raise TypeError(
        f'{path or "the root"!r} is frozen: read the text into a Copy()'
      )
    names = params.GetKeys()
    for name, below in node.below.items():
      where = key_path.Field(path, name)
      if name not in names:
        where = where if isinstance(name, str) else f'{path}[{name}]'
        hint = spelling.Hint(str(name), names, 'params')
        raise AttributeError(
          f'{below.where}: {where!r} is not defined in {params._Label()}{hint}'
        )
      old = getattr(params, name)
      new = self._Value(old, below, where)
      if new is not old and (type(new) is not str or new != old):
        self._changes.append((params, name, new))

  def _Construct(self, cls_node: statements.Node, path: str) -> Any:
    """New Params of the class on a `cls` line."""
    try:
      owner = text_values.ParseValue(cls_node.text)
    except ValueError as e:
      raise ValueError(f"{cls_node.where}: '{path}.cls': {e}") from None
    params = getattr(owner, 'Params', None)
    new = params() if isinstance(owner, type) and callable(params) else None
    if not text_values.IsParams(new):
      raise ValueError(
        f"{cls_node.where}: '{path}.cls': {cls_node.text} has no Params()"
      )
    return new


def Apply(
  params: Any,
  pieces: list[statements.Statement],
  signs: str = ':',
  parse: Callable[[str, Any], Any] = _ParseStrictly,
) -> None:
  """Applies statements to a Params, all of them or, on an error, none.

  Args:
    params: to change.
    pieces: the statements.
    signs: what may stand between path and value.
    parse: called as parse(text, old value), gives the new value.

  Raises:
    AttributeError, TypeError, ValueError: see Params.FromText.
  """
  _Planner(parse).Apply(params, statements.Tree(pieces, signs))


def FromText(params: Any, text: str) -> None:
  """Applies lines of text to a Params; see Params.FromText."""
  Apply(params, list(statements.Split(text, ends='\n', comments=True)))
