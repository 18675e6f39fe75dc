"""Params: the configuration of layers, inputs, learners and whole models.

  p = hyperparams.Params()
  p.Define('num_layers', 2, 'Number of layers.')
  p.num_layers = 3
  p.Set(num_layers=4)

A Params is a tree: values may be Params, and lists, tuples, dicts and
NestedMaps with Params inside. Every class with Params offers a classmethod
`Params()` that returns `InstantiableParams(cls)` with its definitions, and
takes them in its constructor: `SomeClass.Params().Set(...).Instantiate()`.
"""

from __future__ import annotations

import inspect
import keyword
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lingvo_gpipe.config import (
  hyperparams_text,
  key_path,
  params_values,
  spelling,
)

_NAME_RE = re.compile(r'[a-z][a-z0-9_]*')


class _Shown(str):
  """The text of a default that is not kept."""


class _Definition(NamedTuple):
  default: Any
  description: str


class Params:
  """Named, described and defaulted values.

  Names must be defined before they are set, so that a misspelt one is an error,
  which names the whole path and the near spellings.
  """

  __slots__ = ('_values', '_definitions', '_frozen', '_parent', '__weakref__')

  def __init__(self):
    self._Fill({}, {}, None)

  def _Fill(self, values, definitions, parent):
    put = object.__setattr__
    put(self, '_values', values)
    put(self, '_definitions', definitions)
    put(self, '_frozen', False)
    put(self, '_parent', parent)  # A weak reference, for paths in messages.

  # Definitions and attributes.

  def Define(self, name: str, default: Any, description: str) -> None:
    """Defines a param.

    Args:
      name: a lower-case identifier.
      default: its value until it is set.
      description: what it means, its unit, what None does.

    Raises:
      AttributeError: where it is defined already.
      ValueError: where the name is not a lower-case identifier.
    """
    self._CheckMutable(name)
    if (
      not isinstance(name, str)
      or not _NAME_RE.fullmatch(name)
      or keyword.iskeyword(name)
    ):
      raise ValueError(
        f'param name {name!r} must be a lower-case identifier: '
        f'{_NAME_RE.pattern}, and no keyword of Python'
      )
    if name in self._values:
      raise AttributeError(f'{self._PathOf(name)!r} is defined already')
    if isinstance(default, Params):
      shown = _Shown(hyperparams_text.FormatValue(default))
    else:
      shown = params_values.Copied(default, None)
    self._definitions[name] = _Definition(shown, description)
    self._Put(name, default)

  def _Put(self, name: str, value: Any) -> None:
    """Stores a value and tells the Params inside where they are."""
    if type(value) not in params_values.PLAIN_TYPES:
      parent = weakref.ref(self)
      for _, child in params_values.ParamsInside(value, name):
        ancestor = self
        while ancestor is not None:
          if ancestor is child and child._Holds(self):
            raise ValueError(
              f'{self._PathOf(name)!r} would contain itself; set it to a Copy()'
            )
          ancestor = ancestor._Parent()
        object.__setattr__(child, '_parent', parent)
    self._values[name] = value

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):  # Libraries probe for these.
      raise AttributeError(f'{type(self).__name__} has no attribute {name!r}')
    if name not in self._values:
      raise self._UnknownError(name)
    value = self._values[name]
    if isinstance(value, Params):
      object.__setattr__(value, '_parent', weakref.ref(self))
    return value

  def __setattr__(self, name: str, value: Any) -> None:
    self._CheckMutable(name)
    if name not in self._values:
      raise self._UnknownError(name)
    self._Put(name, value)

  def __delattr__(self, name: str) -> None:
    self.Delete(name)

  def __contains__(self, path: str) -> bool:
    if path in self._values:
      return True
    try:
      self.Get(path)
    except (AttributeError, ValueError):
      return False
    return True

  def __len__(self) -> int:
    return len(self._values)

  def __bool__(self) -> bool:
    return True

  def __dir__(self) -> list[str]:
    return sorted({*super().__dir__(), *self._values})

  def __eq__(self, other: Any) -> bool:
    if type(self) is not type(other):
      return NotImplemented
    return params_values.Equal(self._values, other._values)

  __hash__ = None  # It changes.

  def __str__(self) -> str:
    return self.ToText()

  def __repr__(self) -> str:
    shown = ', '.join(
      f'{name}={hyperparams_text.FormatValue(value)}'
      for name, value in self.IterParams()
      if name != 'cls'
    )
    shown = shown if len(shown) <= 200 else shown[:197] + '...'
    return f'{self._Label()}({shown})'

  def __reduce_ex__(self, unused_protocol: int) -> Any:
    return _Unpickle, (
      type(self),
      self._values,
      self._definitions,
      self._frozen,
    )

  # Where it is, for messages.

  def _Label(self) -> str:
    owner = self._values.get('cls')
    if isinstance(owner, type):
      return f'{owner.__qualname__}.Params'
    return type(self).__name__

  def _Parent(self) -> Params | None:
    return self._parent() if self._parent is not None else None

  def _Path(self) -> str:
    """The path from the root, as far as it is known."""
    parent = self._Parent()
    if parent is None:
      return ''
    for name, value in parent._values.items():
      for path, child in params_values.ParamsInside(value, name):
        if child is self:
          base = parent._Path()
          return f'{base}.{path}' if base else path
    return ''

  def _Holds(self, other: Params) -> bool:
    # What once was a part may have been taken out, so look.
    return other is self or any(
      child._Holds(other)
      for value in self._values.values()
      for _, child in params_values.ParamsInside(value, '')
    )

  def _PathOf(self, name: str) -> str:
    return key_path.Field(self._Path(), name)

  def _UnknownError(self, name: str) -> AttributeError:
    hint = spelling.Hint(name, self._values, 'params')
    return AttributeError(
      f'{self._PathOf(name)!r} is not defined in {self._Label()}{hint}',
      name=name,
    )

  def _CheckMutable(self, name: str) -> None:
    if self._frozen:
      raise TypeError(
        f'{self._PathOf(name)!r} cannot change: these params are frozen; '
        'change them before Instantiate(), or change a Copy()'
      )

  # Values by path.

  def Get(self, path: str) -> Any:
    """The value at a path such as `net.cells[0].name`.

    Args:
      path: names, `[index]` and `['key']`.

    Returns:
      The value.

    Raises:
      AttributeError: where there is none.
      ValueError: where it is not a path.
    """
    return self._Walk(key_path.Parse(path))

  def _Walk(self, steps: list[str | int]) -> Any:
    value, owner, base = self, self, ''
    for step in steps:
      if isinstance(value, Params) and isinstance(step, str):
        owner, base = value, step
        value = getattr(value, step)
        continue
      try:
        below = key_path.Lookup(value, step, base)
      except key_path.MissingKeyError:
        try:  # Again for the whole path, which takes a search.
          key_path.Lookup(value, step, owner._PathOf(base))
        except key_path.MissingKeyError as e:
          raise AttributeError(str(e)) from None
      base = key_path.Element(value, step, base)
      value = below
    return value

  def Set(self, *args: dict[str, Any], **kwargs: Any) -> Params:
    """Sets values by name or path.

    Args:
      *args: dicts {path: value}.
      **kwargs: values by name; `**{'a.b': 3}` gives a path.

    Returns:
      self.

    Raises:
      AttributeError: for a name that is not defined.
      TypeError: where the params are frozen.
    """
    for mapping in (*args, kwargs):
      for path, value in mapping.items():
        self.SetPath(path, value)
    return self

  def SetPath(self, path: str, value: Any) -> Params:
    """Sets the value at one path; see Get and Set."""
    if path in self._values:
      setattr(self, path, value)
      return self
    *steps, last = key_path.Parse(path)
    target = self._Walk(steps)
    if isinstance(target, Params) and isinstance(last, str):
      setattr(target, last, value)
      return self
    self._Walk([*steps, last])  # Raises unless it is there.
    if isinstance(target, tuple):
      raise TypeError(f'{path!r} cannot change: it is in a tuple; set that')
    target[last] = value
    return self

  def Delete(self, *paths: str) -> Params:
    """Removes definitions; returns self."""
    for path in paths:
      *steps, last = key_path.Parse(path)
      target = self._Walk(steps)
      if not isinstance(target, Params):
        raise AttributeError(f'{path!r} is not a param, so it stays')
      target._CheckMutable(last)
      if last not in target._values:
        raise target._UnknownError(last)
      del target._values[last]
      del target._definitions[last]
    return self

  def GetKeys(self) -> list[str]:
    """The names, sorted."""
    return sorted(self._values)

  def IterParams(self) -> Iterator[tuple[str, Any]]:
    """(name, value) in the order of definition."""
    for name in list(self._values):
      yield name, getattr(self, name)

  def Visit(
    self,
    fn: Callable[[str, Any], None],
    enter_fn: Callable[[str, Any], bool] | None = None,
    exit_fn: Callable[[str, Any], None] | None = None,
  ) -> None:
    """Walks the tree, names in alphabetical order.

    Args:
      fn: called as fn(path, value) for what has no inside.
      enter_fn: called as enter_fn(path, value) for Params, lists, tuples and
        dicts, this one (path '') included; False skips them.
      exit_fn: called as exit_fn(path, value) after their inside.
    """

    def _Visit(path, value):
      if isinstance(value, Params):
        inside = [
          (key_path.Field(path, n), value._values[n]) for n in value.GetKeys()
        ]
      elif key_path.IsContainer(value):
        inside = [
          (key_path.Element(value, k, path), v)
          for k, v in key_path.Elements(value)
        ]
      else:
        fn(path, value)
        return
      if enter_fn is None or enter_fn(path, value):
        for child_path, child in inside:
          _Visit(child_path, child)
        if exit_fn is not None:
          exit_fn(path, value)

    _Visit('', self)

  # Copies and freezing.

  def Copy(self) -> Params:
    """A copy that can change, whether or not this one can.

    Params and containers are copied at every depth, and a Params that stands in
    two places becomes two. Other values are the same objects.
    """
    return self._CopyUnder(None)

  def _CopyUnder(self, parent: weakref.ref | None) -> Params:
    result = object.__new__(type(self))
    result._Fill({}, dict(self._definitions), parent)
    own = weakref.ref(result)
    values = result._values
    for name, value in self._values.items():
      values[name] = (
        value
        if type(value) in params_values.PLAIN_TYPES
        else params_values.Copied(value, own)
      )
    return result

  def __copy__(self) -> Params:
    return self.Copy()

  def __deepcopy__(self, unused_memo: dict) -> Params:
    return self.Copy()

  def Freeze(self) -> Params:
    """Makes these params and all that is below them read-only; returns self.

    Lists, dicts and NestedMaps are replaced by read-only ones, which still are
    instances of list, dict and NestedMap. A change raises TypeError with the
    path.
    """
    self._FreezeAt(self._Path())
    return self

  def _FreezeAt(self, base: str) -> None:
    if not self._frozen:
      for name, value in self._values.items():
        if type(value) not in params_values.PLAIN_TYPES:
          self._Put(
            name, params_values.Frozen(value, key_path.Field(base, name))
          )
      object.__setattr__(self, '_frozen', True)

  def IsFrozen(self) -> bool:
    """Whether Freeze() was called here or above."""
    return self._frozen

  # Text.

  def Description(self, name: str) -> str:
    """What the param called `name` means."""
    if name not in self._definitions:
      raise self._UnknownError(name)
    return self._definitions[name].description

  def DescribeText(self) -> str:
    """Name, default and meaning of every param, for help texts."""
    lines = []
    for name in self.GetKeys():
      default, description = self._definitions[name]
      shown = default
      if not isinstance(default, _Shown):
        shown = hyperparams_text.FormatValue(default)
      lines.append(f'{name} (default: {shown})\n    {description}')
    return '\n'.join(lines)

  def ToText(self) -> str:
    """One `path : value` line for every value; see hyperparams_text."""
    return hyperparams_text.ToText(self)

  def FromText(self, text: str) -> Params:
    """Sets values from lines that ToText() wrote or a person.

    Args:
      text: `path : value` lines; not all params need one. Blank lines and
        comments (#) are skipped.

    Returns:
      self. After an error it is unchanged.

    Raises:
      AttributeError: for a path that is not there.
      TypeError: for a value of another type than the old one, unless one of
        them is None; and where the params are frozen.
      ValueError: for a line that is malformed.
    """
    hyperparams_text.FromText(self, text)
    return self

  def TextDiff(self, other: Params) -> str:
    """What differs in `other`, a line a path; '' where they are equal."""
    return hyperparams_text.TextDiff(self, other)


def _Unpickle(kind, values, definitions, frozen):
  result = object.__new__(kind)
  result._Fill({}, definitions, None)
  for name, value in values.items():
    result._Put(name, value)
  return result.Freeze() if frozen else result


class InstantiableParams(Params):
  """Params of a class, which can make its instances."""

  __slots__ = ()

  def __init__(self, cls: type | None = None):
    super().__init__()
    self.Define('cls', cls, 'The class whose params these are.')

  def Instantiate(self, **kwargs: Any) -> Any:
    """Makes an instance: cls(params).

    Args:
      **kwargs: params to set on a copy first; what is not a param goes to the
        constructor.

    Returns:
      The instance.

    Raises:
      ValueError: where cls is None.
      TypeError: for an argument that is neither a param nor one of the
        constructor.
    """
    if self.cls is None:
      path = self._PathOf('cls')
      raise ValueError(f'{path!r} is None: set it to the class to instantiate')
    params = self.Copy()
    arguments = {}
    for name, value in kwargs.items():
      if name in params._values:
        setattr(params, name, value)
      else:
        arguments[name] = value
    if arguments:
      self._CheckArguments(arguments)
    return self.cls(params, **arguments)

  def _CheckArguments(self, arguments: dict[str, Any]) -> None:
    accepted = inspect.signature(self.cls).parameters
    if any(p.kind == p.VAR_KEYWORD for p in accepted.values()):
      return
    for name in arguments:
      if name not in accepted:
        hint = spelling.Hint(name, {*self._values, *accepted}, 'params')
        raise TypeError(
          f'{name!r} is neither a param of {self._Label()} nor an argument of '
          f'its constructor{hint}'
        )


def CopyFieldsTo(
  from_params: Params, to_params: Params, skip: list[str] | None = None
) -> Params:
  """Sets the params of `to_params` to copies of those of `from_params`.

  Args:
    from_params: where the values come from.
    to_params: must define all of them; gets the values.
    skip: names to leave out; `cls` always is.

  Returns:
    to_params.
  """
  for name, value in from_params._values.items():
    if name != 'cls' and name not in (skip or ()):
      setattr(to_params, name, params_values.Copied(value, None))
  return to_params
