"""Paths into nested structures: `net.cells[0].name`, `table['de'].size`.

A path is parsed into steps: a str for `.name` and `['key']`, an int for `[0]`.
NestedMap and Params both walk by them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from lingvo_gpipe.config import spelling

# `name`, `.name`, `[0]`, `['key']` and `["key"]`.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_STEP = rf'\.[A-Za-z_]\w*|\[\s*(?:-?\d+|{_QUOTED})\s*\]'
PATTERN = rf'[A-Za-z_]\w*(?:{_STEP})*'

_PATH_RE = re.compile(PATTERN)
_STEP_RE = re.compile(_STEP)


class MissingKeyError(KeyError):
  """A path that leads nowhere; unlike KeyError it prints as plain text."""

  def __str__(self) -> str:
    return str(self.args[0]) if self.args else ''


def Parse(path: str) -> list[str | int]:
  """The steps of a path.

  Args:
    path: such as `a.b[0]['k']`.

  Returns:
    Its steps, here ['a', 'b', 0, 'k'].

  Raises:
    ValueError: where it is not a path.
  """
  if not isinstance(path, str) or not _PATH_RE.fullmatch(path):
    raise ValueError(
      f"{path!r} is not a path such as name, a.b, cells[0].name or table['key']"
    )
  if '[' not in path:
    return path.split('.')
  head = re.match(r'\w+', path).group()
  steps: list[str | int] = [head]
  for step in _STEP_RE.findall(path, len(head)):
    if step[0] == '.':
      steps.append(step[1:])
    elif step[1:-1].isdigit():
      steps.append(int(step[1:-1]))
    else:
      steps.append(ast.literal_eval(step)[0])
  return steps


def IsNamedTuple(value: Any) -> bool:
  """Whether `value` is a tuple with named fields."""
  return isinstance(value, tuple) and hasattr(type(value), '_fields')


def IsContainer(value: Any) -> bool:
  """Whether paths and traversals go inside `value`: dict, list or tuple."""
  return isinstance(value, (dict, list, tuple))


def Field(base: str, name: str) -> str:
  """The path of a field under `base`, which may be ''."""
  return f'{base}.{name}' if base else name


def Element(container: Any, key: Any, base: str) -> str:
  """The path of an element of a container.

  Args:
    container: a dict, list or tuple that is found at `base`.
    key: key, index or field name in it.
    base: '' at the root.

  Returns:
    `base.key` for identifiers, else `base[key]`.
  """
  if isinstance(key, str) and key.isidentifier():
    if IsNamedTuple(container) or getattr(container, 'DOTTED_KEYS', False):
      return Field(base, key)
  return f'{base}[{key!r}]'


def Elements(container: Any) -> Iterator[tuple[Any, Any]]:
  """(key, value) of a container's elements, in the order of tf.nest."""
  if isinstance(container, dict):
    try:
      keys = sorted(container)
    except TypeError:  # Keys of several types.
      keys = list(container)
    for key in keys:
      yield key, container[key]
  elif IsNamedTuple(container):
    yield from zip(type(container)._fields, container, strict=True)
  else:
    yield from enumerate(container)


def Rebuild(container: Any, elements: list[Any]) -> Any:
  """A container like `container` with other elements.

  Args:
    container: a dict, list or tuple.
    elements: in the order of Elements().

  Returns:
    A new container of the same type and keys; an ordinary one where the old
    one was read-only.
  """
  if isinstance(container, dict):
    keys = [key for key, unused_value in Elements(container)]
    by_key = dict(zip(keys, elements, strict=True))
    result = container.copy()  # Keeps the order, and the type where it can.
    for key in container:
      result[key] = by_key[key]
    return result
  if IsNamedTuple(container):
    return type(container)(*elements)
  return getattr(container, 'PLAIN', type(container))(elements)


def Lookup(container: Any, step: str | int, base: str) -> Any:
  """One step into a container.

  Args:
    container: what the path has led to.
    step: the next step.
    base: the path so far.

  Returns:
    The element.

  Raises:
    MissingKeyError: where there is none.
  """
  where = base or 'the root'
  if isinstance(container, dict):
    if step in container:
      return container[step]
    hint = spelling.Hint(str(step), map(str, container), 'keys')
    raise MissingKeyError(f'{where} has no key {step!r}{hint}')
  if isinstance(step, str) and IsNamedTuple(container):
    if step in container._fields:
      return getattr(container, step)
    hint = spelling.Hint(step, container._fields, 'fields')
    raise MissingKeyError(f'{where} has no field {step!r}{hint}')
  if isinstance(step, int) and isinstance(container, (list, tuple)):
    size = len(container)
    if -size <= step < size:
      return container[step]
    raise MissingKeyError(
      f'{where} has no element [{step}]: its length is {size}'
    )
  kind = type(container).__name__
  raise MissingKeyError(f'{where} is of type {kind}: {step!r} is not inside it')
