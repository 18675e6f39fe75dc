"""NestedMap: a dict with attributes, the structure of batches and weights.

Lists, tuples, namedtuples and dicts may stand inside. Everything that visits
the leaves does it in the order of `tf.nest`: sorted by key. None is a leaf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from lingvo_gpipe.config import key_path, spelling

_KEY_RE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_REJECTED = object()
_MISSING = object()


class NestedMap(dict):
  """A dict whose string keys are attributes too.

  >>> m = NestedMap(a=NestedMap(b=[1, 2]))
  >>> m.a.b[1], m.GetItem('a.b[1]')
  (2, 2)

  Keys must be identifiers and no names of methods. Paths are those of
  key_path.
  """

  __slots__ = ()

  DOTTED_KEYS = True  # Paths write `.key`.

  def __init__(self, *args: Any, **kwargs: Any):
    super().__init__()
    self.Update(*args, **kwargs)

  # Keys and attributes.

  @classmethod
  def CheckKey(cls, key: Any) -> None:
    """Raises ValueError unless `key` can be a key."""
    if not isinstance(key, str) or not _KEY_RE.fullmatch(key):
      raise ValueError(
        f'NestedMap key {key!r} is not an identifier; use letters, digits and '
        'underscores, or a plain dict'
      )
    if key in _RESERVED:
      raise ValueError(
        f'NestedMap key {key!r} is the name of a method; use another one'
      )

  def __setitem__(self, key: str, value: Any) -> None:
    self.CheckKey(key)
    super().__setitem__(key, value)

  def __missing__(self, key: Any) -> Any:
    hint = spelling.Hint(str(key), self, 'keys')
    raise key_path.MissingKeyError(f'no key {key!r}{hint}')

  def __getattr__(self, name: str) -> Any:
    if name in self:
      return self[name]
    # Libraries probe for private names all the time: no search for those.
    hint = '' if name.startswith('_') else spelling.Hint(name, self, 'keys')
    raise AttributeError(f'NestedMap has no key {name!r}{hint}', name=name)

  def __setattr__(self, name: str, value: Any) -> None:
    self[name] = value

  def __delattr__(self, name: str) -> None:
    if name not in self:
      hint = spelling.Hint(name, self, 'keys')
      raise AttributeError(f'NestedMap has no key {name!r}{hint}', name=name)
    del self[name]

  def __dir__(self) -> list[str]:
    return sorted({*super().__dir__(), *self})

  def __repr__(self) -> str:
    return f'{type(self).__name__}({super().__repr__()})'

  def __or__(self, other: Any) -> NestedMap:
    return self.copy().Update(other)

  def __ior__(self, other: Any) -> NestedMap:
    return self.Update(other)

  def setdefault(self, key: str, default: Any = None) -> Any:
    if key not in self:
      self[key] = default
    return self[key]

  def update(self, *args: Any, **kwargs: Any) -> None:
    for key, value in dict(*args, **kwargs).items():
      self[key] = value

  def Update(self, *args: Any, **kwargs: Any) -> NestedMap:
    """dict.update that returns self."""
    self.update(*args, **kwargs)
    return self

  # Copies.

  def copy(self) -> NestedMap:
    """A shallow copy."""
    return NestedMap(self)

  __copy__ = copy

  def DeepCopy(self) -> NestedMap:
    """Copies every container; the leaves are the same objects."""
    return self.Transform(lambda value: value)

  @staticmethod
  def FromNestedDict(value: Any) -> Any:
    """Turns every dict in `value` into a NestedMap."""
    if isinstance(value, dict):
      return NestedMap(
        {k: NestedMap.FromNestedDict(v) for k, v in value.items()}
      )
    if key_path.IsContainer(value):
      return key_path.Rebuild(
        value, [NestedMap.FromNestedDict(v) for v in value]
      )
    return value

  def ToNestedDict(self) -> dict[str, Any]:
    """Turns this map and every NestedMap inside into a plain dict."""

    def _Plain(value):
      if isinstance(value, dict):
        return {k: _Plain(v) for k, v in value.items()}
      if key_path.IsContainer(value):
        return key_path.Rebuild(value, [_Plain(v) for v in value])
      return value

    return _Plain(self)

  # Paths.

  def GetItem(self, path: str) -> Any:
    """The element at `path`.

    Args:
      path: such as `a.b[0].c`.

    Returns:
      The element.

    Raises:
      KeyError: where there is none.
    """
    value, base = self, ''
    for step in key_path.Parse(path):
      below = key_path.Lookup(value, step, base)
      base = key_path.Element(value, step, base)
      value = below
    return value

  def Get(self, path: str, default: Any = None) -> Any:
    """The element at `path`, or `default` where there is none."""
    try:
      return self.GetItem(path)
    except key_path.MissingKeyError:
      return default

  def Has(self, path: str) -> bool:
    """Whether there is an element at `path`."""
    return self.Get(path, _MISSING) is not _MISSING

  def Set(self, path: str, value: Any) -> NestedMap:
    """Sets the element at `path`, making maps and lists on the way.

    Args:
      path: such as `a.b[0].c`; an index may be that of the next element.
      value: the element.

    Returns:
      self.

    Raises:
      KeyError: where the path leads through something that is no container.
    """
    steps = key_path.Parse(path)
    target, base = self, ''
    for i, step in enumerate(steps):
      last = i + 1 == len(steps)
      child = value
      if not last:
        try:
          child = key_path.Lookup(target, step, base)
        except key_path.MissingKeyError:
          child = NestedMap() if isinstance(steps[i + 1], str) else []
        else:
          target, base = child, key_path.Element(target, step, base)
          continue
      if isinstance(target, list) and step == len(target):
        target.append(child)
      elif isinstance(target, dict) and isinstance(step, str):
        target[step] = child
      else:
        key_path.Lookup(target, step, base)  # Raises unless it is there.
        if isinstance(target, tuple):
          raise key_path.MissingKeyError(f'{base} is a tuple: it cannot change')
        target[step] = child
      target, base = child, key_path.Element(target, step, base)
    return self

  def GetSlice(self, paths: Iterable[str]) -> NestedMap:
    """A new map with only the elements at `paths`.

    Args:
      paths: keys and dotted paths of keys.

    Returns:
      The map; its elements are the same objects.

    Raises:
      KeyError: where one of them is not there.
    """
    result = NestedMap()
    for path in paths:
      result.Set(path, self.GetItem(path))
    return result

  def Union(self, other: NestedMap) -> NestedMap:
    """The fields of both, in a new map; maps in both are united too.

    Args:
      other: a map with other fields.

    Returns:
      The union.

    Raises:
      ValueError: where both have different values at one path.
    """

    def _Union(a, b, base):
      result = a.copy()
      for key, value in b.items():
        path = key_path.Element(b, key, base)
        if key not in a or a[key] is value:
          result[key] = value
        elif isinstance(a[key], NestedMap) and isinstance(value, NestedMap):
          result[key] = _Union(a[key], value, path)
        else:
          raise ValueError(f'both maps of the union have {path!r}')
      return result

    return _Union(self, other, '')

  # Leaves.

  def FlattenItems(self) -> list[tuple[str, Any]]:
    """(path, leaf) of every leaf, in the order of tf.nest."""
    items = []

    def _Visit(value, path):
      if not key_path.IsContainer(value):
        items.append((path, value))
        return
      for key, child in key_path.Elements(value):
        _Visit(child, key_path.Element(value, key, path))

    _Visit(self, '')
    return items

  def Flatten(self) -> list[Any]:
    """Every leaf, in the order of tf.nest."""
    return [value for unused_path, value in self.FlattenItems()]

  def Pack(self, leaves: Iterable[Any]) -> NestedMap:
    """A map like this one with other leaves.

    Args:
      leaves: as many as Flatten() gives, in its order.

    Returns:
      The new map.

    Raises:
      ValueError: where their number is another.
    """
    leaves = list(leaves)
    expected = len(self.Flatten())
    if len(leaves) != expected:
      raise ValueError(
        f'Pack needs {expected} leaves, one for each of this map, and got '
        f'{len(leaves)}'
      )
    rest = iter(leaves)
    return self.Transform(lambda unused_value: next(rest))

  def Transform(self, fn: Callable[[Any], Any]) -> NestedMap:
    """A new map of fn(leaf)."""
    return self.TransformWithKey(lambda unused_path, value: fn(value))

  def TransformWithKey(self, fn: Callable[[str, Any], Any]) -> NestedMap:
    """A new map of fn(path, leaf)."""

    def _Map(value, path):
      if not key_path.IsContainer(value):
        return fn(path, value)
      return key_path.Rebuild(
        value,
        [
          _Map(child, key_path.Element(value, key, path))
          for key, child in key_path.Elements(value)
        ],
      )

    return _Map(self, '')

  def Filter(self, fn: Callable[[Any], bool]) -> NestedMap:
    """A new map of the leaves with fn(leaf); see FilterKeyVal."""
    return self.FilterKeyVal(lambda unused_path, value: fn(value))

  def FilterKeyVal(self, fn: Callable[[str, Any], bool]) -> NestedMap:
    """A new map of the leaves with fn(path, leaf).

    Containers that lose all their leaves go too; a namedtuple has None in place
    of a leaf that it loses.

    Args:
      fn: whether to keep a leaf.

    Returns:
      The new map.
    """

    def _Filter(value, path):
      if not key_path.IsContainer(value):
        return value if fn(path, value) else _REJECTED
      kept = {}
      for key, child in key_path.Elements(value):
        new = _Filter(child, key_path.Element(value, key, path))
        if new is not _REJECTED:
          kept[key] = new
      if not kept and path:
        return _REJECTED
      if isinstance(value, dict):
        result = type(value)()
        result.update(kept)
        return result
      if key_path.IsNamedTuple(value):
        return type(value)(**{f: kept.get(f) for f in value._fields})
      return type(value)(kept.values())

    return _Filter(self, '')

  def IsCompatible(self, other: Any) -> bool:
    """Whether `other` has the same structure, so that Pack can carry over."""

    def _Same(a, b):
      if not key_path.IsContainer(a) or not key_path.IsContainer(b):
        return key_path.IsContainer(a) == key_path.IsContainer(b)
      if isinstance(a, dict) != isinstance(b, dict):
        return False
      if not isinstance(a, dict) and type(a) is not type(b):
        return False
      if len(a) != len(b):
        return False
      pairs = zip(key_path.Elements(a), key_path.Elements(b), strict=True)
      return all(ka == kb and _Same(va, vb) for (ka, va), (kb, vb) in pairs)

    return _Same(self, other)

  def DebugString(self) -> str:
    """One line a leaf: path, then dtype and shape or the value."""
    lines = []
    for path, value in self.FlattenItems():
      shape = getattr(value, 'shape', None)
      if shape is not None:
        dtype = getattr(value.dtype, 'name', value.dtype)
        text = f'{dtype} {shape}'
      else:
        text = repr(value)
        text = text if len(text) <= 80 else text[:77] + '...'
      lines.append((path, text))
    width = max((len(path) for path, unused_text in lines), default=0)
    return '\n'.join(f'{path:{width}}  {text}' for path, text in lines)


_RESERVED = frozenset(dir(NestedMap))
