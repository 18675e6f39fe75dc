"""The handwritten digits that scikit-learn carries: 1,797 of 8 x 8 pixels.

They are the test part of UCI's "Optical Recognition of Handwritten Digits". The
file is read where the package is installed; scikit-learn itself, slow to
import, is not imported.

The split is a fixed rule: within each class, examples are put in the order of a
hash of their place in the file; the first 20% (rounded up) are test, the next
10% (rounded) dev, the rest train. So every class has its share of each part,
and a part never depends on a seed.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import os

import numpy as np
import tensorflow as tf

from lingvo_gpipe import (
  base_input,
  hyperparams,
  nested_map,
  user_error,
  weights,
)
from lingvo_gpipe.export import serving_signature
from tasks.image import augment, serving

IMAGE_SIZE, NUM_CLASSES = 8, 10
SPLITS = ('train', 'dev', 'test')

_TEST_SHARE, _DEV_SHARE = 0.2, 0.1
_MAX_PIXEL = 16.0


class DigitsInput(base_input.RandomAccessInput):
  """Mini-batches of `inputs` [N, 8, 8, 1], `labels` [N] and `weights` [N].

  Pixels are in [0, 1].
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('split', 'train', "'train', 'dev' or 'test'.")
    p.Define(
      'path',
      '',
      'The file digits.csv.gz; empty: the one in the installed scikit-learn.',
    )
    p.Define('max_rotation', 10.0, 'Of augmentation, degrees to both sides.')
    p.Define('max_zoom', 0.1, 'Of augmentation: sizes change by so much.')
    p.Define('max_shift', 0.7, 'Of augmentation, pixels to all sides.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.split not in SPLITS:
      raise ValueError(
        f'DigitsInput: split={self.params.split!r} is none of '
        f'{", ".join(SPLITS)}'
      )

  def BatchSpec(self) -> nested_map.NestedMap:
    n = self.params.batch_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n, IMAGE_SIZE, IMAGE_SIZE, 1], tf.float32),
      labels=tf.TensorSpec([n], tf.int32),
      weights=tf.TensorSpec([n], tf.float32),
    )

  @functools.cached_property
  def _data(self) -> tuple[np.ndarray, np.ndarray]:
    images, labels = Load(self.params.path)
    part = Split(labels)[self.params.split]
    return images[part], labels[part]

  @property
  def num_examples(self) -> int:
    return len(self._data[1])

  def Examples(
    self, indices: tf.Tensor, seed: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    p = self.params
    images, labels = self._data
    inputs = tf.gather(tf.constant(images), indices)
    if p.training:
      inputs = augment.RandomAffine(
        inputs,
        seed,
        max_rotation=p.max_rotation,
        max_zoom=p.max_zoom,
        max_shift=p.max_shift,
      )
    return {'inputs': inputs, 'labels': tf.gather(labels, indices)}

  def ServingSignatures(self) -> dict[str, serving_signature.ServingSignature]:
    """Images as in a batch, and picture files of any size; see serving."""
    return serving.Signatures([IMAGE_SIZE, IMAGE_SIZE, 1], _FromBytes)

  def ClassNames(self) -> list[str]:
    """'0' to '9'."""
    return [str(digit) for digit in range(NUM_CLASSES)]


def _FromBytes(contents: tf.Tensor) -> tf.Tensor:
  """A digit, light on dark, out of a picture file: [8, 8, 1] in [0, 1]."""
  picture = serving.DecodeGrey(contents)
  # Means over areas, as those who made the digits counted black pixels.
  size = [IMAGE_SIZE, IMAGE_SIZE]
  return tf.image.resize(picture, size, 'area') / 255.0


def Find() -> str:
  """The path of digits.csv.gz in the installed scikit-learn.

  Raises:
    UserError: where it is not there.
  """
  spec = importlib.util.find_spec('sklearn')
  for folder in spec.submodule_search_locations or () if spec else ():
    path = os.path.join(folder, 'datasets', 'data', 'digits.csv.gz')
    if os.path.exists(path):
      return path
  problem = 'has no digits.csv.gz' if spec else 'is not installed'
  raise user_error.UserError(
    f'the digits come with the Python package scikit-learn, which {problem}: '
    'pip install scikit-learn, or name the file by '
    '--model_params_override=input.path=/path/to/digits.csv.gz'
  )


def Load(path: str = '') -> tuple[np.ndarray, np.ndarray]:
  """Reads the digits.

  Args:
    path: of digits.csv.gz; '' finds it.

  Returns:
    (images, labels): float32 [1797, 8, 8, 1] in [0, 1], int32 [1797].

  Raises:
    UserError: where the file is not there or holds something else.
  """
  path = path or Find()
  try:
    with gzip.open(path, 'rt') as lines:
      table = np.loadtxt(lines, delimiter=',', dtype=np.float32, ndmin=2)
    if table.shape[1] != IMAGE_SIZE**2 + 1:
      raise ValueError(f'its rows have {table.shape[1]} numbers')
  except (OSError, EOFError, ValueError) as e:
    raise user_error.UserError(
      f'{path} is no file of digits, whose rows have 64 pixels and a label: {e}'
    ) from e
  images = table[:, :-1].reshape(-1, IMAGE_SIZE, IMAGE_SIZE, 1) / _MAX_PIXEL
  return images, table[:, -1].astype(np.int32)


def Split(labels: np.ndarray) -> dict[str, np.ndarray]:
  """The module's rule: which examples belong to which part.

  Args:
    labels: of all examples in the order of the file.

  Returns:
    {'train', 'dev', 'test'}: sorted indices.
  """
  parts: dict[str, list[int]] = {name: [] for name in SPLITS}
  for label in range(NUM_CLASSES):
    members = [int(i) for i in np.flatnonzero(labels == label)]
    members.sort(key=lambda i: weights.Hash64('digits', i))
    num_test = int(np.ceil(_TEST_SHARE * len(members)))
    num_dev = round(_DEV_SHARE * len(members))
    parts['test'] += members[:num_test]
    parts['dev'] += members[num_test : num_test + num_dev]
    parts['train'] += members[num_test + num_dev :]
  return {name: np.sort(part) for name, part in parts.items()}
