"""Finding data that TFDS prepared, and saying what is missing.

Everything is looked for before anything long starts, and without importing TFDS
where that can be avoided.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling

_VERSION = re.compile(r'\d+\.\d+\.\d+')

_NO_DOWNLOAD = (
  'or try --model=image.digits.AmoebaNetDigits, which needs no download'
)

# What to do where TFDS cannot download a dataset by itself.
_BY_HAND = {
  'imagenet2012': (
    'Put ILSVRC2012_img_train.tar (138 GB) and ILSVRC2012_img_val.tar (6.3 GB) '
    'from image-net.org into {data_dir}/downloads/manual and run "python -m '
    'tools.imagenet.prepare --data_dir={data_dir}"'
  ),
}


def DataDir(data_dir: str) -> str:
  """Where TFDS keeps its data.

  Args:
    data_dir: '': $TFDS_DATA_DIR, or else ~/tensorflow_datasets, as TFDS has it.

  Returns:
    The directory.
  """
  return os.path.expanduser(
    data_dir or os.environ.get('TFDS_DATA_DIR') or '~/tensorflow_datasets'
  )


def FindPrepared(data_dir: str, dataset: str) -> str | None:
  """The directory of a prepared dataset.

  Args:
    data_dir: as DataDir gives it.
    dataset: NAME, NAME/CONFIG, NAME:VERSION or NAME/CONFIG:VERSION.

  Returns:
    The directory with the newest dataset_info.json; None: there is none.

  Raises:
    UserError: where there are several configs and none is named.
  """
  name, _, version = dataset.partition(':')
  base = os.path.join(data_dir, name)
  depths = ['*'] if '/' in name else ['*', '*/*']
  found = []
  for depth in depths:
    for path in tf.io.gfile.glob(
      os.path.join(base, depth, 'dataset_info.json')
    ):
      folder = os.path.dirname(path)
      last = os.path.basename(folder)
      if _VERSION.fullmatch(last) and version in ('', last):
        found.append(folder)
    if found:
      break
  configs = sorted({os.path.relpath(os.path.dirname(x), base) for x in found})
  if len(configs) > 1:
    raise user_error.UserError(
      f'{base} has several configurations: write input.source.dataset as '
      f'{" or ".join(f"{name}/{c}" for c in configs)}'
    )
  return max(found, key=_VersionNumbers, default=None)


def _VersionNumbers(folder: str) -> list[int]:
  return [int(x) for x in os.path.basename(folder).split('.')]


def Builder(data_dir: str, dataset: str, *, download: bool) -> tuple[Any, bool]:
  """The TFDS builder of a dataset.

  Args:
    data_dir: as DataDir gives it.
    dataset: see FindPrepared.
    download: whether TFDS may download and prepare what is not there.

  Returns:
    (builder, whether its data lies in files). Only what stands in for data in
    tests, tfds.testing.mock_data, has a builder without files.

  Raises:
    UserError: where the data is not there, or is no such dataset.
  """
  folder = FindPrepared(data_dir, dataset)
  tfds = Import()
  with Quiet():
    if folder:
      return tfds.builder_from_directory(folder), True
    builder = _RegisteredBuilder(tfds, data_dir, dataset)
    if download:
      _Download(tfds.download.DownloadConfig, builder, dataset)
      return builder, os.path.isdir(builder.data_dir)
    try:
      builder.as_dataset(split='train')
    except (AssertionError, ValueError) as e:
      raise user_error.UserError(
        _MissingText(data_dir, dataset, builder.MANUAL_DOWNLOAD_INSTRUCTIONS)
      ) from e
    return builder, False


def _RegisteredBuilder(tfds: Any, data_dir: str, dataset: str) -> Any:
  try:
    return tfds.builder(dataset, data_dir=data_dir)
  except tfds.core.registered.DatasetNotFoundError as e:
    name = dataset.partition(':')[0].partition('/')[0]
    # Those of the community are a list to be downloaded.
    names = tfds.list_builders(with_community_datasets=False)
    raise user_error.UserError(
      f'{dataset} (input.source.dataset): {data_dir} has no prepared data of '
      'this name, and TFDS knows no such dataset'
      + spelling.Hint(name, names, 'datasets')
    ) from e
  except (ValueError, AssertionError) as e:  # No such version, no such config.
    raise user_error.UserError(f'input.source.dataset={dataset}: {e}') from e


def _Download(config: Any, builder: Any, dataset: str) -> None:
  try:
    builder.download_and_prepare(download_config=config(try_download_gcs=False))
  except Exception as e:  # Each dataset has its own ways to fail.
    raise user_error.UserError(
      f'{dataset}: TFDS could not download or prepare it in '
      f'{builder.data_dir}: {e}'
    ) from e


def _MissingText(data_dir: str, dataset: str, manual: str | None) -> str:
  name = dataset.partition(':')[0].partition('/')[0]
  if name in _BY_HAND:
    action = _BY_HAND[name].format(data_dir=data_dir)
  elif manual:
    action = (
      f'TFDS cannot download it by itself: {manual.strip().rstrip(".")}. Then '
      'train once with --download (input.source.download=True), which looks in '
      f'{data_dir}/downloads/manual'
    )
  else:
    action = (
      'Say where it is by --data_dir (input.source.data_dir), let TFDS '
      'download it by --download (input.source.download=True)'
    )
  return f'{dataset}: no prepared data in {data_dir}. {action}, {_NO_DOWNLOAD}'


def CheckFiles(dataset: str, paths: Sequence[str]) -> None:
  """Checks that all files of a split are there.

  Args:
    dataset: the name, for the message.
    paths: of the files.

  Raises:
    UserError: naming the first that is not.
  """
  present = {
    folder: set(tf.io.gfile.listdir(folder))
    for folder in {os.path.dirname(path) for path in paths}
  }
  missing = [
    path
    for path in paths
    if os.path.basename(path) not in present[os.path.dirname(path)]
  ]
  if missing:
    raise user_error.UserError(
      f'{dataset}: {len(missing)} of {len(paths)} files are missing, the first '
      f'is {missing[0]}: copy them there again, or remove '
      f'{os.path.dirname(missing[0])} and prepare the dataset anew'
    )


def Import() -> Any:
  """Imports TFDS, which takes half a second, when it is needed."""
  with Quiet():
    import tensorflow_datasets

    return tensorflow_datasets


@contextlib.contextmanager
def Quiet() -> Iterator[None]:
  """Without what TFDS logs and prints while it works.

  Yields:
    Nothing.
  """
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)
  try:
    with contextlib.redirect_stdout(io.StringIO()):
      yield
  finally:
    logging.set_verbosity(verbosity)
