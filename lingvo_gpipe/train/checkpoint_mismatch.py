"""Whether a checkpoint is of the model that is to be restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity

_MAX_LISTED = 10


def Check(
  prefix: str,
  other: str,
  variables: Mapping[str, tf.Variable],
  *,
  model: str,
  ignore_unused: bool,
) -> None:
  """Compares names, shapes and dtypes of variables, without reading them.

  Args:
    prefix: of the checkpoint.
    other: name of the model that wrote it.
    variables: {variable path: variable}, all of which it must have.
    model: their model's name.
    ignore_unused: whether it may have variables beside them.

  Raises:
    MismatchError: lists what differs.
    CorruptError: where its index is damaged.
  """
  theirs = checkpoint_integrity.ReadVariables(prefix)
  ours = {name: (tuple(v.shape), v.dtype) for name, v in variables.items()}
  kinds = {
    'differ': [
      f'{name} (there {_Show(theirs[name])}, here {_Show(ours[name])})'
      for name in sorted(ours.keys() & theirs.keys())
      if ours[name] != theirs[name]
    ],
    'are missing in it': _Only(ours, theirs),
    'are unknown here': [] if ignore_unused else _Only(theirs, ours),
  }
  kinds = {kind: found for kind, found in kinds.items() if found}
  if not kinds:
    return
  of = 'with other params'
  if other != model:
    of = f'but this is {model!r}'
  each = _MAX_LISTED // len(kinds)
  listed = '; '.join(
    f'{len(found)} variables {kind}: {_Listed(found, each)}'
    for kind, found in kinds.items()
  )
  raise checkpoint_files.MismatchError(
    f'checkpoint {prefix} is of model {other!r}, {of}: {listed}. Choose '
    'another directory (--logdir), or run the model that wrote it'
  )


def _Show(variable: tuple[tuple[int, ...], tf.DType]) -> str:
  shape, dtype = variable
  return f'{dtype.name} {list(shape)}'


def _Only(some: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
  return [
    f'{name} ({_Show(some[name])})'
    for name in sorted(some.keys() - others.keys())
  ]


def _Listed(items: list[str], count: int) -> str:
  rest = f' and {len(items) - count} more' if len(items) > count else ''
  return ', '.join(items[:count]) + rest
