"""Tokens of a language model out of files: text, byte by byte, or ids.

Three kinds of data:

  a folder     with folders train, dev and test, these are the parts. Else each
               file belongs to one of them by a hash of its path in the folder:
               5% are test, 5% dev.
  a file       its first 90% are train, the next 5% dev, the last 5% test.
  '<python>'   the sources of Python's standard library, read where the running
               Python has them, split like a folder.

Files ending in .npy hold a vector of ids each. All others are text in UTF-8 or
any other encoding, as tokens from 0 to 255, one for each byte; in front of each
text stands FILE_ID.
"""

from __future__ import annotations

import os
import sysconfig

import numpy as np

from lingvo_gpipe import user_error, weights

PYTHON_SOURCES = '<python>'
SPLITS = ('train', 'dev', 'test')

# What stands in front of each text, and the ids that text needs with it.
FILE_ID = 256
TEXT_VOCAB_SIZE = 257

_TEST_SHARE, _DEV_SHARE = 0.05, 0.05


def Load(data_dir: str, split: str, vocab_size: int) -> np.ndarray:
  """Reads a part of the data.

  Args:
    data_dir: a folder, a file, or '<python>'.
    split: 'train', 'dev' or 'test'.
    vocab_size: all ids must be below it.

  Returns:
    uint16 or int32 [tokens], all files of the part in the order of their paths.

  Raises:
    UserError: where there is no data, or it does not fit.
  """
  if not data_dir:
    raise user_error.UserError(
      'no data for the language model: set --data_dir to a folder or file of '
      f"text, or of ids (.npy), or to '{PYTHON_SOURCES}', the sources of "
      'Python itself'
    )
  paths = Files(data_dir)
  if os.path.isfile(data_dir):
    tokens = _Range(_Read(paths, vocab_size), split)
  else:
    tokens = _Read(_FilesOf(paths, split), vocab_size)
  if len(tokens) < 2:
    raise user_error.UserError(
      f'--data_dir={data_dir} has {len(tokens)} tokens of {split} data in '
      f'{len(paths)} files in all; give a single file, which is cut into '
      'train, dev and test, or folders of these names'
    )
  return tokens


def Files(data_dir: str) -> dict[str, str]:
  """The files of the data.

  Args:
    data_dir: a folder, a file, or '<python>'.

  Returns:
    {path within the folder: path}, sorted; hidden files are left out.

  Raises:
    UserError: where nothing is there.
  """
  if data_dir == PYTHON_SOURCES:
    return _PythonSources()
  if os.path.isfile(data_dir):
    return {os.path.basename(data_dir): data_dir}
  if not os.path.isdir(data_dir):
    raise user_error.UserError(
      f'--data_dir={data_dir}: there is no such data, neither a folder nor a '
      'file'
    )
  return _Walk(data_dir)


def Part(name: str) -> str:
  """The part that a file belongs to, by a hash of its path in the folder."""
  place = weights.Hash64('lm', name) / 2**63
  if place < _TEST_SHARE:
    return 'test'
  return 'dev' if place < _TEST_SHARE + _DEV_SHARE else 'train'


def _FilesOf(paths: dict[str, str], split: str) -> dict[str, str]:
  """Those files of a folder that belong to a part."""
  has_parts = any(_Top(name) == 'train' for name in paths)
  part_of = _Top if has_parts else Part
  return {name: path for name, path in paths.items() if part_of(name) == split}


def _Range(tokens: np.ndarray, split: str) -> np.ndarray:
  """Those tokens of a file that belong to a part."""
  ends = (0.0, 1.0 - _DEV_SHARE - _TEST_SHARE, 1.0 - _TEST_SHARE, 1.0)
  start, end = (
    round(len(tokens) * ends[SPLITS.index(split) + i]) for i in (0, 1)
  )
  return tokens[start:end]


def _PythonSources() -> dict[str, str]:
  """The standard library without its tests.

  Left out are encodings, which are tables that programs have written, each much
  like others in another part, and what depends on the machine.
  """
  folder = sysconfig.get_paths()['stdlib']
  paths = {
    name: path
    for name, path in _Walk(folder).items()
    if name.endswith('.py')
    and not name.startswith('_sysconfigdata')
    and not any(_IsLeftOut(part) for part in name.split('/')[:-1])
  }
  if not paths:
    raise user_error.UserError(
      f'{PYTHON_SOURCES}: no data, because there are no sources of the '
      f'standard library in {folder}; set --data_dir to a folder of text'
    )
  return paths


def _IsLeftOut(folder: str) -> bool:
  return (
    folder.endswith(('-packages', 'test', 'tests')) or folder == 'encodings'
  )


def _Walk(folder: str) -> dict[str, str]:
  paths = {}
  for root, folders, names in os.walk(folder):
    folders[:] = [name for name in folders if not name.startswith('.')]
    for name in names:
      if not name.startswith('.'):
        path = os.path.join(root, name)
        paths[os.path.relpath(path, folder).replace(os.sep, '/')] = path
  return dict(sorted(paths.items()))


def _Top(name: str) -> str:
  """The folder within the data's folder that a file is in; '': in none."""
  return name.partition('/')[0] if '/' in name else ''


def _Read(paths: dict[str, str], vocab_size: int) -> np.ndarray:
  """The tokens of files, one file after the other."""
  dtype = np.uint16 if vocab_size <= 2**16 else np.int32
  pieces = [np.zeros([0], dtype)]
  for path in paths.values():
    with user_error.Expected(OSError, ValueError, prefix=f'{path}: '):
      tokens = _Ids(path) if path.endswith('.npy') else _Text(path)
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < vocab_size:
      raise user_error.UserError(
        f'{path} has ids from {tokens.min()} to {tokens.max()}, but the model '
        f'has those from 0 to {vocab_size - 1}; change vocab_size, of the '
        'input and of the network, or the data'
      )
    pieces.append(tokens.astype(dtype))
  return np.concatenate(pieces)


def _Ids(path: str) -> np.ndarray:
  ids = np.load(path, mmap_mode='r', allow_pickle=False)
  if ids.ndim != 1 or ids.dtype.kind not in 'iu':
    raise ValueError(
      f'the data must be a vector of integers, not {ids.dtype} of shape '
      f'{list(ids.shape)}'
    )
  return ids


def _Text(path: str) -> np.ndarray:
  text = np.fromfile(path, np.uint8)
  if not text.all():
    raise ValueError('the data has bytes that are 0, so it is no text')
  return np.concatenate([np.array([FILE_ID], np.uint16), text])
