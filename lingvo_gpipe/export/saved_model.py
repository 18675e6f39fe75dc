"""Writes a SavedModel: all of it or nothing.

It is made in a directory beside its place and then renamed, so that whoever
loads the model never sees half of one, and a failure leaves the one that was
there before.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import user_error

# The file that makes a directory a SavedModel.
_GRAPH_FILE = 'saved_model.pb'


def CheckOutput(path: str, *, overwrite: bool) -> None:
  """Checks, before any long work, that a SavedModel may be put at a path.

  Args:
    path: of the directory, which need not exist.
    overwrite: whether a SavedModel that is there may be replaced.

  Raises:
    UserError: for a file, and for a directory that holds something else, or
      what may not be replaced.
  """
  flag = f'--output={path}'
  if os.path.exists(path) and not os.path.isdir(path):
    raise user_error.UserError(f'{flag} is a file; name a directory')
  with user_error.Expected(OSError, prefix=f'{flag}: '):
    files = os.listdir(path) if os.path.isdir(path) else []
  if not files:
    return
  if not overwrite:
    raise user_error.UserError(
      f'{flag} is not empty; name another directory, or give --overwrite to '
      'replace the SavedModel there'
    )
  if _GRAPH_FILE not in files:
    raise user_error.UserError(
      f'{flag} is not empty and holds no SavedModel, so --overwrite leaves it '
      'alone; name another directory'
    )


def Write(
  module: tf.Module,
  functions: Mapping[str, Any],
  assets: Mapping[str, str | bytes],
  path: str,
  *,
  overwrite: bool,
) -> None:
  """Writes a SavedModel.

  Args:
    module: holds the variables of the functions.
    functions: {name of the signature: concrete function}.
    assets: {file name: content} of files that go with the model, in its folder
      `assets`.
    path: of the directory, see CheckOutput.
    overwrite: whether a SavedModel that is there may be replaced.

  Raises:
    UserError: where it cannot be written.
  """
  path = os.path.realpath(path)
  CheckOutput(path, overwrite=overwrite)
  parent, name = os.path.split(path)
  with user_error.Expected(
    OSError, tf.errors.OpError, prefix=f'--output={path}: '
  ):
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f'.{name}-') as folder:
      model = os.path.join(folder, 'model')
      module.assets = [
        _Asset(folder, file, data) for file, data in sorted(assets.items())
      ]
      tf.saved_model.save(module, model, signatures=dict(functions))
      if os.path.exists(path):
        os.rename(path, os.path.join(folder, 'replaced'))
      os.rename(model, path)


def _Asset(
  folder: str, name: str, content: str | bytes
) -> tf.saved_model.Asset:
  path = os.path.join(folder, name)
  with open(path, 'wb') as f:
    f.write(content.encode() if isinstance(content, str) else content)
  return tf.saved_model.Asset(path)
