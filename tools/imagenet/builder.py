"""TFDS's own builder of ImageNet, reading two given archives."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from typing import Any

from tasks.image import tfds_data
from tools.imagenet import preparation_progress

NAME = 'imagenet2012'

# What follows the last file of an archive: two empty blocks, and whatever fills
# up the last record.
_MIN_END = 2 * tarfile.BLOCKSIZE
_MAX_END = _MIN_END + tarfile.RECORDSIZE


def CheckArchive(path: str) -> None:
  """Checks that an archive is whole, by looking at its table only.

  tarfile takes what it cannot read for the end of the archive.

  Args:
    path: of the archive.

  Raises:
    TarError: where it is not.
  """
  end = 0
  with tarfile.open(path, 'r:') as archive:
    for entry in archive:
      blocks = -(-entry.size // tarfile.BLOCKSIZE)
      end = entry.offset_data + blocks * tarfile.BLOCKSIZE
  rest = os.path.getsize(path) - end
  if not _MIN_END <= rest <= _MAX_END:
    raise tarfile.ReadError(
      f'{path} is damaged or incomplete: its table ends at byte {end:,} of '
      f'{end + rest:,}'
    )


def Prepare(
  data_dir: str,
  train_tar: str,
  val_tar: str,
  progress: preparation_progress.PreparationProgress,
) -> str:
  """Makes the dataset; all of it is there afterwards, or nothing.

  Args:
    data_dir: where TFDS keeps its datasets.
    train_tar: ILSVRC2012_img_train.tar.
    val_tar: ILSVRC2012_img_val.tar.
    progress: is told of each picture.

  Returns:
    The directory of the dataset.
  """
  tfds = tfds_data.Import()
  with tfds_data.Quiet():
    # As TFDS names it; it isn't an attribute of a public module.
    from tensorflow_datasets.datasets.imagenet2012 import imagenet_common

    base = tfds.builder_cls(NAME)

    class _Builder(base, skip_registration=True):
      """Finds the archives where they are, and counts pictures."""

      name = NAME
      VERSION = base.VERSION

      def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        labels = imagenet_common.get_validation_labels(val_tar)
        return {
          'train': self._Counted('train', train_tar, dl_manager),
          'validation': self._Counted(
            'validation', val_tar, dl_manager, validation_labels=labels
          ),
        }

      def _Counted(
        self, split: str, archive: str, dl_manager: Any, **kwargs: Any
      ) -> Iterator[tuple[str, dict[str, Any]]]:
        progress.StartReading(archive)
        examples = self._generate_examples(
          dl_manager.iter_archive(archive), **kwargs
        )
        for key, example in examples:
          data = example['image'].read()
          progress.Add(len(data))
          yield key, {**example, 'image': io.BytesIO(data)}
        progress.StartWriting(split)

    # Its progress bars would fill a log, and say nothing of the time left.
    tfds.disable_progress_bar()
    builder = _Builder(data_dir=data_dir)
    builder.download_and_prepare(
      download_config=tfds.download.DownloadConfig(
        manual_dir=os.path.dirname(train_tar), try_download_gcs=False
      )
    )
  return builder.data_dir
