"""Folders of pictures: which files there are, and which part each is of.

Either DIR/train/CLASS/x.jpg with DIR/val or DIR/test beside train, or simply
DIR/CLASS/x.jpg. Then a hash of CLASS/x.jpg says which part a picture is of, so
it stays there when others come or go.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from lingvo_gpipe import user_error, weights
from tasks.image import picture

SPLITS = ('train', 'validation', 'test')

# How the folders of the held-out parts may be called.
_FOLDERS = {
  'train': ('train',),
  'validation': ('validation', 'val'),
  'test': ('test',),
}

_LAYOUT = (
  'expected are pictures in DIR/train/CLASS/ and DIR/val/CLASS/, or in '
  'DIR/CLASS/'
)


class Pictures(NamedTuple):
  """The pictures of a part.

  Attributes:
    folder: that all are in.
    class_names: sorted.
    names: paths from `folder`, CLASS/FILE, sorted.
    labels: of each, the place of its class in class_names.
  """

  folder: str
  class_names: tuple[str, ...]
  names: list[str]
  labels: list[int]


def Find(
  data_dir: str,
  split: str,
  *,
  validation_share: float,
  test_share: float,
) -> Pictures:
  """Lists the pictures of a part.

  Args:
    data_dir: the folder DIR.
    split: 'train', 'validation' or 'test'. A single held-out folder serves as
      both of the latter.
    validation_share: of pictures without part folders that are of this part.
    test_share: likewise.

  Returns:
    The Pictures.

  Raises:
    UserError: where they are not as they should be.
  """
  if not data_dir:
    raise user_error.UserError(
      'which folder are the pictures in? Set --data_dir=DIR '
      f'(input.source.data_dir); {_LAYOUT}'
    )
  root = os.path.abspath(os.path.expanduser(data_dir))
  if not os.path.isdir(root):
    raise user_error.UserError(
      f'{root}, the folder of pictures, does not exist: set --data_dir=DIR '
      f'(input.source.data_dir); {_LAYOUT}'
    )
  parts = _Parts(root)
  if not parts:
    pictures = _List(root)
    chosen = [
      i
      for i, name in enumerate(pictures.names)
      if _PartOf(name, validation_share, test_share) == split
    ]
    pictures = pictures._replace(
      names=[pictures.names[i] for i in chosen],
      labels=[pictures.labels[i] for i in chosen],
    )
  else:
    if split not in parts:
      raise user_error.UserError(
        f'{root} has a folder train, but none for the held-out part: put the '
        'pictures for evaluation into val/CLASS/, or all of them into '
        'DIR/CLASS/, without train, to have them split'
      )
    _CheckClasses(root, parts)
    pictures = _List(os.path.join(root, parts[split]))
  if split == 'train':
    _CheckNoneEmpty(pictures, ' for training')
  if not pictures.names:
    raise user_error.UserError(
      f'{root}: no picture falls into the part {split}; there are too few, or '
      f'input.source.{split}_share is too small'
    )
  return pictures


def _Parts(root: str) -> dict[str, str]:
  """{part: its folder in `root`}; empty where there is no folder train."""
  folders = _Folders(root)
  parts = {
    split: next((x for x in names if x in folders), None)
    for split, names in _FOLDERS.items()
  }
  if not parts['train']:
    return {}
  for split, other in (('validation', 'test'), ('test', 'validation')):
    parts[split] = parts[split] or parts[other]
  return {split: folder for split, folder in parts.items() if folder}


def _Folders(folder: str) -> list[str]:
  with os.scandir(folder) as entries:
    return sorted(
      x.name for x in entries if not x.name.startswith('.') and x.is_dir()
    )


def _CheckClasses(root: str, parts: dict[str, str]) -> None:
  train = _Folders(os.path.join(root, parts['train']))
  for folder in sorted(set(parts.values()) - {parts['train']}):
    other = _Folders(os.path.join(root, folder))
    for name in sorted(set(train) ^ set(other)):
      has, lacks = ('train', folder) if name in train else (folder, 'train')
      raise user_error.UserError(
        f'{root}: the class {name} is in {has}, but not in {lacks}; both need '
        'the same classes, as folders of the same names'
      )


def _List(folder: str) -> Pictures:
  """All pictures of all classes."""
  classes = tuple(_Folders(folder))
  names, labels = [], []
  for label, name in enumerate(classes):
    with os.scandir(os.path.join(folder, name)) as entries:
      files = sorted(
        x.name
        for x in entries
        if x.name.lower().endswith(picture.EXTENSIONS)
        and not x.name.startswith('.')
      )
    names += [f'{name}/{x}' for x in files]
    labels += [label] * len(files)
  pictures = Pictures(folder, classes, names, labels)
  if not names:
    raise user_error.UserError(
      f'{folder} has no pictures ({", ".join(picture.EXTENSIONS)}) in folders '
      f'named for their classes; {_LAYOUT}'
    )
  _CheckNoneEmpty(pictures, '')
  return pictures


def _CheckNoneEmpty(pictures: Pictures, purpose: str) -> None:
  seen = set(pictures.labels)
  for label, name in enumerate(pictures.class_names):
    if label not in seen:
      raise user_error.UserError(
        f'{os.path.join(pictures.folder, name)} has no pictures{purpose} '
        f'({", ".join(picture.EXTENSIONS)}): add some, or remove the folder'
      )


def _PartOf(name: str, validation_share: float, test_share: float) -> str:
  draw = weights.Hash64('folder', name) / 2**63
  if draw < test_share:
    return 'test'
  return 'validation' if draw < test_share + validation_share else 'train'
