"""Prepares ImageNet from the two archives that image-net.org gives away.

  python -m tools.imagenet.prepare --data_dir=/data

reads /data/downloads/manual/ILSVRC2012_img_train.tar and ..._val.tar, and makes
/data/imagenet2012, which TFDS and the models image.imagenet.* read. Either all
of it is there at the end, or nothing. Where it is there already, nothing is
done. The archives stay as they are, and are not needed afterwards.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
import tarfile

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from lingvo_gpipe.jobs import progress
from tools.benchmarks import command

_DATA_DIR = flags.DEFINE_string(
  'data_dir',
  '',
  'Where TFDS keeps its datasets; the models take the same flag. Empty: '
  '$TFDS_DATA_DIR, or else ~/tensorflow_datasets.',
)
_TRAIN_TAR = flags.DEFINE_string(
  'train_tar',
  '',
  'The archive of training images. Empty: '
  'DATA_DIR/downloads/manual/ILSVRC2012_img_train.tar.',
)
_VAL_TAR = flags.DEFINE_string(
  'val_tar',
  '',
  'The archive of validation images. Empty: '
  'DATA_DIR/downloads/manual/ILSVRC2012_img_val.tar.',
)
_INTERVAL = flags.DEFINE_float(
  'progress_seconds', 10.0, 'Time between lines of progress.', lower_bound=0.1
)

# flag: (name of the archive, its size).
_ARCHIVES = {
  'train_tar': ('ILSVRC2012_img_train.tar', '138 GB'),
  'val_tar': ('ILSVRC2012_img_val.tar', '6.3 GB'),
}

# Training and validation.
_NUM_IMAGES = 1_281_167 + 50_000

# Records take as much room as the archives; so do, before, those of a split
# that are being shuffled, which are removed while they are written.
_ROOM = 1.1


def Main() -> int:
  """The tool."""
  quiet_import.ImportTensorFlow(quiet=True)
  import tensorflow as tf

  from tasks.image import tfds_data
  from tools.imagenet import builder, preparation_progress

  data_dir = os.path.abspath(tfds_data.DataDir(_DATA_DIR.value))
  prepared = tfds_data.FindPrepared(data_dir, builder.NAME)
  if prepared:
    progress.Show(f'{prepared} is there already; nothing to do')
    return 0
  train_tar, val_tar = _Archives(data_dir)
  _CheckRoom(data_dir, os.path.getsize(train_tar) + os.path.getsize(val_tar))
  _ShowLeftovers(os.path.join(data_dir, builder.NAME))
  with user_error.Expected(OSError, tarfile.TarError):
    for path in (train_tar, val_tar):
      builder.CheckArchive(path)
  # An ordinary exit removes what is unfinished.
  signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
  with user_error.Expected(
    OSError,
    tarfile.TarError,
    RuntimeError,  # TFDS, of an example.
    tf.errors.OpError,  # TensorFlow, of a file.
    prefix='ImageNet could not be prepared; nothing is left behind: ',
  ):
    with preparation_progress.PreparationProgress(
      os.path.join(data_dir, builder.NAME),
      interval=_INTERVAL.value,
      # While TFDS works, what is printed is dropped.
      show=functools.partial(print, file=sys.stdout, flush=True),
    ) as shown:
      folder = builder.Prepare(data_dir, train_tar, val_tar, shown)
  progress.Show(f'{folder} is ready: {shown.Summary()}')
  if shown.images != _NUM_IMAGES:
    progress.Show(
      f'note: ImageNet has {_NUM_IMAGES:,} images, these archives had '
      f'{shown.images:,}'
    )
  return 0


def _Archives(data_dir: str) -> tuple[str, str]:
  """The paths of both archives.

  Args:
    data_dir: where to look for them.

  Returns:
    (training, validation).

  Raises:
    UserError: where one is not there.
  """
  paths, missing = [], []
  for flag, (name, size) in _ARCHIVES.items():
    path = os.path.abspath(
      os.path.expanduser(
        flags.FLAGS[flag].value
        or os.path.join(data_dir, 'downloads', 'manual', name)
      )
    )
    paths.append(path)
    if not os.path.isfile(path):
      missing.append(f'{path} ({size}; --{flag})')
  if missing:
    raise user_error.UserError(
      f'there is no {" and no ".join(missing)}: register at image-net.org, '
      'download the ILSVRC2012 images, and put both archives there, not '
      'unpacked'
    )
  train_tar, val_tar = paths
  return train_tar, val_tar


def _CheckRoom(data_dir: str, size: int) -> None:
  folder = data_dir
  while not os.path.isdir(folder):
    folder = os.path.dirname(folder)
  free, needed = shutil.disk_usage(folder).free, _ROOM * size
  if free < needed:
    raise user_error.UserError(
      f'{folder} has {free / 1e9:.1f} GB left, the dataset needs '
      f'{needed / 1e9:.1f} GB; make room, or choose another --data_dir'
    )


def _ShowLeftovers(folder: str) -> None:
  if os.path.isdir(folder):
    for name in sorted(os.listdir(folder)):
      if name.startswith('incomplete.'):
        progress.Show(
          f'note: {os.path.join(folder, name)} is what a killed preparation '
          'left; unless one is running, remove it'
        )


if __name__ == '__main__':
  command.Run(Main)
