"""Pictures in folders named for their classes, read in any order."""

from __future__ import annotations

import functools
import os

import tensorflow as tf

from lingvo_gpipe import base_input, hyperparams
from tasks.image import image_source, picture_folder


class FolderSource(image_source.ImageSource):
  """DIR/train/CLASS/x.jpg and DIR/val/CLASS/x.jpg, or DIR/CLASS/x.jpg.

  Classes are the folders, sorted by name. Every epoch is a permutation of all
  pictures. Any place of the order is reached at once.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.split = 'train'
    p.Define(
      'validation_share',
      0.1,
      'Where there are no folders train, val, test: so much is validation. A '
      'hash of CLASS/FILE chooses.',
    )
    p.Define('test_share', 0.1, 'Likewise, for test.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.split not in picture_folder.SPLITS:
      raise ValueError(
        f'FolderSource: split={p.split!r} is none of '
        f'{", ".join(picture_folder.SPLITS)}'
      )
    shares = p.validation_share, p.test_share
    if min(shares) < 0 or sum(shares) >= 1:
      raise ValueError(
        f'FolderSource: validation_share={shares[0]}, test_share={shares[1]} '
        'must be 0 or more and leave something to train'
      )

  @functools.cached_property
  def _pictures(self) -> picture_folder.Pictures:
    p = self.params
    return picture_folder.Find(
      p.data_dir,
      p.split,
      validation_share=p.validation_share,
      test_share=p.test_share,
    )

  @property
  def class_names(self) -> tuple[str, ...]:
    return self._pictures.class_names

  @property
  def num_examples(self) -> int:
    return len(self._pictures.names)

  def Examples(
    self, start: int, *, training: bool, seed: int
  ) -> image_source.Examples:
    size = self.num_examples
    names = tf.constant(self._pictures.names)
    labels = tf.constant(self._pictures.labels, tf.int64)
    folder = self._pictures.folder + os.sep

    def _Index(place):
      if not training:
        return place
      return base_input.EpochOrder(place[tf.newaxis], size, seed)[0]

    def _Path(place):
      return folder + tf.gather(names, _Index(place))

    def _Load(place):
      return {
        'image': tf.io.read_file(_Path(place)),
        'label': tf.gather(labels, _Index(place)),
      }

    end = tf.int64.max if training else size
    return image_source.Examples(
      tf.data.Dataset.range(start, end), _Load, _Path
    )
