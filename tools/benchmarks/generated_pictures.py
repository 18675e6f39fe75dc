"""JPEG files that are as much work as photographs, as folders and for TFDS."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from tasks.image import tfds_data

DATASET = 'generated_pictures'
CLASSES = ('first', 'second')

HEIGHT, WIDTH = 300, 400

# Of the noise on smooth colours. Files are about 65 kB, as much for a pixel as
# those of ImageNet.
_NOISE = 9.0


def Picture(index: int) -> bytes:
  """A JPEG file of 400 x 300 pixels.

  Args:
    index: other indices give other pictures.

  Returns:
    Its bytes.
  """
  seed = tf.constant([index, 1])
  smooth = tf.random.stateless_uniform([12, 16, 3], seed, maxval=255.0)
  noise = tf.random.stateless_normal([HEIGHT, WIDTH, 3], seed, 0.0, _NOISE)
  image = tf.image.resize(smooth, [HEIGHT, WIDTH]) + noise
  image = tf.cast(tf.clip_by_value(image, 0.0, 255.0), tf.uint8)
  return tf.io.encode_jpeg(image).numpy()


def Write(folder: str, count: int) -> tuple[str, str, float]:
  """Writes pictures, as folders and as a TFDS dataset.

  Args:
    folder: where to.
    count: number of pictures.

  Returns:
    (data_dir of the folders, data_dir of the dataset, mean bytes of a picture).
  """
  pictures = [Picture(i) for i in range(count)]
  folders = os.path.join(folder, 'folders')
  for name in CLASSES:
    # The same pictures are there to evaluate.
    for part in ('train', 'val'):
      os.makedirs(os.path.join(folders, part, name))
  for i, data in enumerate(pictures):
    for part in ('train', 'val'):
      name = CLASSES[i % len(CLASSES)]
      with open(os.path.join(folders, part, name, f'{i}.jpg'), 'wb') as f:
        f.write(data)
  dataset = os.path.join(folder, 'tfds')
  _WriteTfds(dataset, pictures)
  return folders, dataset, float(np.mean([len(x) for x in pictures]))


def _WriteTfds(data_dir: str, pictures: list[bytes]) -> None:
  tfds = tfds_data.Import()
  features = tfds.features.FeaturesDict(
    {
      'image': tfds.features.Image(
        shape=(None, None, 3), encoding_format='jpeg'
      ),
      'label': tfds.features.ClassLabel(names=CLASSES),
    }
  )
  examples = [
    (i, {'image': data, 'label': i % len(CLASSES)})
    for i, data in enumerate(pictures)
  ]
  with tfds_data.Quiet():
    tfds.disable_progress_bar()
    tfds.dataset_builders.store_as_tfds_dataset(
      name=DATASET,
      version='1.0.0',
      features=features,
      split_datasets={'train': examples},
      data_dir=data_dir,
      download_config=tfds.download.DownloadConfig(num_shards=4),
    )
