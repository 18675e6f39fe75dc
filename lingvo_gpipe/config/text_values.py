"""Values of Params as text, and back without evaluating anything.

  None True 3 0.5 inf nan 'text' b'bytes'    as in Python, floats exactly
  [1, 2]  (1, 2)  {'a': 1}                   lists, tuples, dicts
  NestedMap({'a': 1})
  float32                                    dtypes of TensorFlow, by name
  type/module/Name                           classes and functions
  enum/module/Name.MEMBER                    enumerations

Classes, functions and enumerations are looked up in modules that are imported
already. Other objects print as object/module/Name, which cannot be read back.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
import warnings
from typing import Any

from lingvo_gpipe import nested_map
from lingvo_gpipe.config import key_path

_CONSTANTS = {
  'None': None,
  'True': True,
  'False': False,
  'inf': float('inf'),
  '-inf': float('-inf'),
  'nan': float('nan'),
}
_DTYPES = frozenset(
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn '
  'float8_e5m2 half int16 int32 int4 int64 int8 qint16 qint32 qint8 quint16 '
  'quint8 resource string uint16 uint32 uint4 uint64 uint8 variant'.split()
)
# NestedMap before dict, bool before int: subclasses first.
_NAMED_KINDS = (nested_map.NestedMap, bool, int, float, str, list, tuple, dict)
_SIMPLE_STRING_RE = re.compile(r"'[^'\\\n]*'|\"[^\"\\\n]*\"")
_INT_RE = re.compile(r'-?[0-9]{1,18}')
_FLOAT_RE = re.compile(r'-?(?:[0-9]+\.[0-9]*|[0-9]+(?=e))(?:e[+-]?[0-9]+)?')
_REFERENCE_RE = re.compile(r'(type|enum)/([\w.]+)/([\w.]+)')


def _IsDType(value: Any) -> bool:
  tf = sys.modules.get('tensorflow')
  return tf is not None and isinstance(value, tf.DType)


def IsParams(value: Any) -> bool:
  """Whether `value` is a Params; this module knows no more of them."""
  return hasattr(type(value), 'IterParams')


def KindOf(value: Any) -> str:
  """How messages call the type of `value`."""
  if value is None:
    return 'None'
  if type(value) in _NAMED_KINDS:
    return type(value).__name__
  if IsParams(value):
    return 'Params'
  if _IsDType(value):
    return 'dtype'
  if isinstance(value, type) or inspect.isroutine(value):
    return 'class or function'
  if isinstance(value, enum.Enum):
    return type(value).__qualname__
  for kind in _NAMED_KINDS:
    if isinstance(value, kind):
      return kind.__name__
  return type(value).__name__


def FormatValue(value: Any) -> str:
  """The text of a value, on one line."""
  if value is None or isinstance(value, bool):
    return repr(value)
  if isinstance(value, enum.Enum):
    kind = type(value)
    return f'enum/{kind.__module__}/{kind.__qualname__}.{value.name}'
  for kind in (int, float, str, bytes):
    if isinstance(value, kind):
      return kind.__repr__(value)  # Not NumPy's `np.float64(0.5)`.
  if isinstance(value, dict):
    items = value.items()
    if isinstance(value, nested_map.NestedMap):
      items = sorted(items)
    body = ', '.join(f'{FormatValue(k)}: {FormatValue(v)}' for k, v in items)
    if isinstance(value, nested_map.NestedMap):
      return f'NestedMap({{{body}}})'
    return f'{{{body}}}'
  if isinstance(value, list):
    return f'[{", ".join(map(FormatValue, value))}]'
  if isinstance(value, tuple):
    comma = ',' if len(value) == 1 else ''
    return f'({", ".join(map(FormatValue, value))}{comma})'
  if IsParams(value):
    return f'<{value._Label()}>'
  if _IsDType(value):
    return value.name
  if isinstance(value, type) or inspect.isroutine(value):
    name = getattr(value, '__qualname__', value.__name__)
    return f'type/{value.__module__}/{name}'
  if getattr(value, 'shape', None) == () and hasattr(value, 'item'):
    return FormatValue(value.item())  # A scalar of NumPy.
  return f'object/{type(value).__module__}/{type(value).__qualname__}'


def ParseValue(text: str) -> Any:
  """The value of a text; nothing is imported or evaluated.

  Args:
    text: as FormatValue gives it.

  Returns:
    The value.

  Raises:
    ValueError: where it is not the text of a value.
  """
  text = text.strip()
  if text in _CONSTANTS:
    return _CONSTANTS[text]
  if _INT_RE.fullmatch(text):
    return int(text)
  if _FLOAT_RE.fullmatch(text):
    return float(text)
  if _SIMPLE_STRING_RE.fullmatch(text):
    return text[1:-1]
  if text in _DTYPES:
    return _DType(text)
  reference = _REFERENCE_RE.fullmatch(text)
  if reference:
    return _LookUp(*reference.groups())
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      tree = ast.parse(text, mode='eval')
    return _FromNode(tree.body)
  except (SyntaxError, RecursionError, MemoryError):
    raise ValueError(f'{text!r} is not a value{_Advice(text)}') from None


def _Advice(text: str) -> str:
  if not text:
    return '; it is empty: write None for none'
  if text.startswith('object/'):
    return ': an object of this kind has no text to be read from'
  if text.startswith('type/'):
    return ': only names of modules can be looked up, not local ones'
  if re.fullmatch(r'[^\s\'"\[\](){},]+', text):
    return f"; a string needs quotes: '{text}'"
  return '; write a literal of Python, a dtype or type/module/Name'


def _DType(name: str) -> Any:
  import tensorflow as tf  # Late: most of the framework's core needs none.

  return tf.as_dtype(name)


def _LookUp(kind: str, module: str, name: str) -> Any:
  reference = f'{kind}/{module}/{name}'
  found = sys.modules.get(module)
  if found is None:
    raise ValueError(
      f'{reference}: module {module!r} is not imported; import it before '
      'reading this text'
    )
  for part in name.split('.'):
    found = getattr(found, part, None)
  if kind == 'enum':
    if isinstance(found, enum.Enum):
      return found
  elif isinstance(found, type) or inspect.isroutine(found):
    return found
  raise ValueError(f'{reference}: module {module!r} has no such {kind}')


def _Unsupported(node: ast.AST) -> ValueError:
  text = ast.unparse(node).replace(' / ', '/')
  return ValueError(f'{text!r} is not a value{_Advice(text)}')


def _FromNode(node: ast.AST) -> Any:
  """The value of a syntax tree."""
  if isinstance(node, ast.Constant):
    if isinstance(node.value, (str, bytes, int, float, type(None))):
      return node.value
  elif isinstance(node, ast.UnaryOp) and isinstance(
    node.op, (ast.USub, ast.UAdd)
  ):
    value = _FromNode(node.operand)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
      return -value if isinstance(node.op, ast.USub) else value
  elif isinstance(node, ast.Tuple):
    return tuple(map(_FromNode, node.elts))
  elif isinstance(node, ast.List):
    return list(map(_FromNode, node.elts))
  elif isinstance(node, ast.Dict) and None not in node.keys:
    keys = map(_FromNode, node.keys)
    try:
      return dict(zip(keys, map(_FromNode, node.values), strict=True))
    except TypeError:
      raise ValueError(
        f'{ast.unparse(node)!r} has a key that cannot be one of a dict'
      ) from None
  elif isinstance(node, ast.Name):
    if node.id in _CONSTANTS:
      return _CONSTANTS[node.id]
    if node.id in _DTYPES:
      return _DType(node.id)
  elif isinstance(node, ast.Attribute):
    if ast.unparse(node.value) == 'tf' and node.attr in _DTYPES:
      return _DType(node.attr)
  elif isinstance(node, ast.BinOp):
    reference = _REFERENCE_RE.fullmatch(ast.unparse(node).replace(' / ', '/'))
    if reference:
      return _LookUp(*reference.groups())
  elif isinstance(node, ast.Call):
    if (
      ast.unparse(node.func) == 'NestedMap'
      and not node.keywords
      and len(node.args) <= 1
      and all(isinstance(a, ast.Dict) for a in node.args)
    ):
      return nested_map.NestedMap(*map(_FromNode, node.args))
  raise _Unsupported(node)


def TypeProblem(old: Any, new: Any) -> str:
  """What is wrong with `new` in place of `old`; '' where nothing is.

  Either may be None; an int may replace a float; lists, tuples stand for each
  other, dicts and NestedMaps too.
  """
  if type(old) is type(new):
    return ''
  old_kind, new_kind = KindOf(old), KindOf(new)
  alike = ({'list', 'tuple'}, {'dict', 'NestedMap'})
  if (
    'None' in (old_kind, new_kind)
    or old_kind == new_kind
    or (old_kind, new_kind) == ('float', 'int')
    or any({old_kind, new_kind} == pair for pair in alike)
  ):
    return ''
  shown = FormatValue(old)
  shown = shown if len(shown) <= 60 else shown[:57] + '...'
  new_shown = FormatValue(new)
  return f'is of type {old_kind} ({shown}), not {new_kind} ({new_shown})'


def IsSameNamedTuple(old: Any, new: Any) -> bool:
  """Whether the plain tuple `new` can be one of the type of `old`."""
  return (
    key_path.IsNamedTuple(old)
    and isinstance(new, tuple)
    and len(new) == len(old)
  )
