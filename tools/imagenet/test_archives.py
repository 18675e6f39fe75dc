"""Archives of a few tiny pictures, made like those of ILSVRC2012, for tests."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence

from tasks.image import test_pictures

# The first classes by name: ImageNet's labels 0, 1, 2.
CLASSES = ('n01440764', 'n01443537', 'n01484850')


def Make(folder: str, classes: Sequence[str] = CLASSES) -> tuple[str, str]:
  """Writes both archives.

  Args:
    folder: where to; it is made.
    classes: of the training pictures.

  Returns:
    Paths of the archives of 4 training pictures for each class, and of 5
    validation pictures.
  """
  os.makedirs(folder)
  train = os.path.join(folder, 'ILSVRC2012_img_train.tar')
  with tarfile.open(train, 'w') as archive:
    for label, name in enumerate(classes):
      inner = io.BytesIO()
      with tarfile.open(fileobj=inner, mode='w') as class_archive:
        for i in range(4):
          _Add(
            class_archive,
            f'{name}_{i}.JPEG',
            test_pictures.Jpeg(10 * label + i),
          )
      _Add(archive, f'{name}.tar', inner.getvalue())
  validation = os.path.join(folder, 'ILSVRC2012_img_val.tar')
  with tarfile.open(validation, 'w') as archive:
    for i in range(5):
      _Add(
        archive,
        f'ILSVRC2012_val_{i + 1:08d}.JPEG',
        test_pictures.Jpeg(100 + i),
      )
  return train, validation


def _Add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
  entry = tarfile.TarInfo(name)
  entry.size = len(data)
  archive.addfile(entry, io.BytesIO(data))
