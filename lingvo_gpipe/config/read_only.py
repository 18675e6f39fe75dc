"""Lists and dicts that refuse to change, for frozen Params.

They are subclasses of list, dict and NestedMap, so that whatever reads those
reads them. They can be filled (tf.nest makes them empty and fills them) until
they are sealed. Copies are ordinary lists, dicts and NestedMaps.
"""

from __future__ import annotations

from typing import Any

from lingvo_gpipe import nested_map


def _Refusing(name: str, base: type) -> Any:
  method = getattr(base, name)

  def _Checked(self, *args, **kwargs):
    if self._sealed is not None:
      raise TypeError(
        f'{self._sealed!r} cannot change: it belongs to frozen params; change '
        'a Copy() of them, before Instantiate()'
      )
    return method(self, *args, **kwargs)

  _Checked.__name__ = name
  return _Checked


class ReadOnly:
  """What the three have in common."""

  __slots__ = ()

  @classmethod
  def Sealed(cls, elements: Any, path: str) -> Any:
    """A container of `elements`, which is at `path` in its Params."""
    result = cls(elements)
    object.__setattr__(result, '_sealed', path)
    return result

  def __reduce_ex__(self, unused_protocol: int) -> Any:
    # Of copy and pickle: what comes out is an ordinary container.
    return self.PLAIN, (self.PLAIN(self),)


class ReadOnlyList(ReadOnly, list):
  """A list that refuses to change."""

  _sealed = None
  PLAIN = list


class ReadOnlyDict(ReadOnly, dict):
  """A dict that refuses to change."""

  _sealed = None
  PLAIN = dict

  def __or__(self, other: Any) -> dict:
    return dict(self) | other


class ReadOnlyNestedMap(ReadOnly, nested_map.NestedMap):
  """A NestedMap that refuses to change."""

  _sealed = None
  PLAIN = nested_map.NestedMap


_CHANGING = {
  ReadOnlyList: (
    '__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop '
    'remove reverse sort'
  ),
  ReadOnlyDict: (
    '__setitem__ __delitem__ __ior__ clear pop popitem setdefault update'
  ),
  ReadOnlyNestedMap: (
    '__setitem__ __delitem__ __ior__ __setattr__ __delattr__ Set Update clear '
    'pop popitem setdefault update'
  ),
}
for _class, _names in _CHANGING.items():
  for _name in _names.split():
    setattr(_class, _name, _Refusing(_name, _class))
