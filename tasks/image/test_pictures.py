"""Small pictures, folders and TFDS datasets of them, for tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tasks.image import tfds_data


def Picture(seed: int, height: int = 30, width: int = 40) -> np.ndarray:
  """A smooth picture of random colours.

  Args:
    seed: other seeds give other pictures.
    height: in pixels.
    width: likewise.

  Returns:
    uint8 [height, width, 3].
  """
  values = tf.random.stateless_uniform([4, 5, 3], (seed, 1), maxval=255.0)
  return tf.cast(tf.image.resize(values, [height, width]), tf.uint8).numpy()


def Jpeg(seed: int, **kwargs: Any) -> bytes:
  """Picture(seed) as a JPEG file."""
  return tf.io.encode_jpeg(Picture(seed, **kwargs)).numpy()


def MakeFolder(folder: str, counts: Mapping[str, int]) -> None:
  """Writes JPEG files of several sizes, 0.jpg, 1.jpg, ..., no two alike.

  Args:
    folder: where to.
    counts: {folder below it, such as 'train/cat': number of pictures}.
  """
  seed = 0
  for name, count in counts.items():
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    for i in range(count):
      seed += 1
      with open(os.path.join(folder, name, f'{i}.jpg'), 'wb') as f:
        f.write(Jpeg(seed, height=20 + seed % 7, width=20 + seed % 11))


def MakeTfds(
  data_dir: str,
  name: str,
  counts: Mapping[str, int],
  *,
  num_files: int = 1,
  **kwargs: Any,
) -> Any:
  """Writes a TFDS dataset with the classes ape, bee and cat.

  The label of example i is i % 3. Its image, 3 x 4 pixels, is i everywhere.

  Args:
    data_dir: where to.
    name: of the dataset.
    counts: {split: number of examples}, at most 256.
    num_files: that each split is written to.
    **kwargs: of store_as_tfds_dataset.

  Returns:
    The builder.
  """
  tfds = tfds_data.Import()
  features = tfds.features.FeaturesDict(
    {
      'image': tfds.features.Image(shape=(None, None, 3)),
      'label': tfds.features.ClassLabel(names=['ape', 'bee', 'cat']),
      'extra': tfds.features.Text(),
    }
  )

  def _Examples(count):
    for i in range(count):
      image = np.full([3, 4, 3], i, np.uint8)
      yield i, {'image': image, 'label': i % 3, 'extra': str(i)}

  with tfds_data.Quiet():
    return tfds.dataset_builders.store_as_tfds_dataset(
      name=name,
      version='1.0.0',
      features=features,
      split_datasets={
        split: list(_Examples(count)) for split, count in counts.items()
      },
      data_dir=data_dir,
      download_config=tfds.download.DownloadConfig(num_shards=num_files),
      **kwargs,
    )
