"""What Params do with the values they hold: copy, freeze, search, compare."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from lingvo_gpipe import nested_map
from lingvo_gpipe.config import key_path, read_only, text_values

# Types of values that have no inside, to be quick with most of them.
PLAIN_TYPES = frozenset({int, float, bool, str, bytes, type, type(None)})


def Copied(value: Any, parent: weakref.ref | None) -> Any:
  """Copies Params and containers; anything else is the same object."""
  if type(value) in PLAIN_TYPES:
    return value
  if text_values.IsParams(value):
    return value._CopyUnder(parent)
  if key_path.IsContainer(value):
    return key_path.Rebuild(
      value,
      [Copied(v, parent) for unused_k, v in key_path.Elements(value)],
    )
  return value


def Frozen(value: Any, path: str) -> Any:
  """Freezes Params in `value` and makes lists and dicts read-only."""
  if text_values.IsParams(value):
    value._FreezeAt(path)
  elif key_path.IsContainer(value) and not isinstance(
    value, read_only.ReadOnly
  ):
    plain = key_path.Rebuild(
      value,
      [
        Frozen(v, key_path.Element(value, k, path))
        for k, v in key_path.Elements(value)
      ],
    )
    if isinstance(value, nested_map.NestedMap):
      return read_only.ReadOnlyNestedMap.Sealed(plain, path)
    if isinstance(value, dict):
      return read_only.ReadOnlyDict.Sealed(plain, path)
    return (
      read_only.ReadOnlyList.Sealed(plain, path)
      if isinstance(value, list)
      else plain
    )
  return value


def ParamsInside(value: Any, path: str) -> Iterator[tuple[str, Any]]:
  """(path, Params) of the Params that `value` is or holds."""
  if text_values.IsParams(value):
    yield path, value
  elif key_path.IsContainer(value):
    for key, child in key_path.Elements(value):
      yield from ParamsInside(child, key_path.Element(value, key, path))


def Equal(a: Any, b: Any) -> bool:
  """Like ==, with NaN equal to NaN."""
  if a is b:
    return True
  if key_path.IsContainer(a) and key_path.IsContainer(b):
    if isinstance(a, dict) and isinstance(b, dict):
      return a.keys() == b.keys() and all(Equal(a[k], b[k]) for k in a)
    for kind in (list, tuple):
      if isinstance(a, kind) and isinstance(b, kind):
        return len(a) == len(b) and all(map(Equal, a, b))
    return False
  if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
    return True
  try:
    return bool(a == b)
  except (TypeError, ValueError):  # Arrays have no single truth.
    return False
