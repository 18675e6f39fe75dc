"""Tests of image_input."""

import itertools
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import (
  color_jitter,
  cutout,
  flip,
  folder_source,
  image_input,
  inception_crop,
  mixup,
  padded_crop,
  test_pictures,
  tfds_data,
  tfds_source,
)

_SIZE = 16
_TRAIN = {'train/cat': 11, 'train/dog': 9}
_HELD_OUT = {'val/cat': 4, 'val/dog': 6}


def _AllTransforms():
  return [
    inception_crop.InceptionCrop.Params(),
    flip.RandomFlip.Params(),
    padded_crop.PaddedCrop.Params(),
    color_jitter.ColorJitter.Params(),
    cutout.Cutout.Params().Set(size=5),
    mixup.Mixup.Params(),
  ]


class _Base(tf.test.TestCase, parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._root = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, cls._root)
    cls._folder = os.path.join(cls._root, 'folder')
    test_pictures.MakeFolder(cls._folder, {**_TRAIN, **_HELD_OUT})
    test_pictures.MakeTfds(
      cls._root, 'beasts', {'train': 20, 'test': 10}, num_files=3
    )

  def _Source(self, kind='folder', training=False, folder=None):
    if kind == 'folder':
      return folder_source.FolderSource.Params().Set(
        data_dir=folder or self._folder,
        split='train' if training else 'validation',
      )
    return tfds_source.TfdsSource.Params().Set(
      data_dir=self._root,
      dataset='beasts',
      split='train' if training else 'test',
      files_at_a_time=2,
    )

  def _Input(self, kind='folder', training=False, **kwargs):
    params = image_input.ImageInput.Params().Set(
      source=self._Source(kind, training),
      image_size=_SIZE,
      batch_size=4,
      training=training,
    )
    return params.Set(**kwargs).Instantiate()

  def _Batches(self, generator, position=0, count=None):
    dataset = generator.Dataset(position).as_numpy_iterator()
    return list(itertools.islice(dataset, count))

  def _AssertSame(self, batches, expected):
    self.assertLen(batches, len(expected))
    for a, b in zip(batches, expected, strict=True):
      self.assertEqual(set(a), set(b))
      for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


class TrainingTest(_Base):
  @parameterized.parameters('folder', 'tfds')
  def testAnyPositionCanBeReachedBitForBit(self, kind):
    generator = self._Input(kind, True, transforms=_AllTransforms())
    unbroken = self._Batches(generator, count=12)
    for position in (1, 6):
      again = self._Input(kind, True, transforms=_AllTransforms())
      self._AssertSame(
        self._Batches(again, position, 12 - position), unbroken[position:]
      )

  @parameterized.parameters('folder', 'tfds')
  def testParallelCallsChangeNothing(self, kind):
    expected = None
    for calls in (1, 0, 5):
      batches = self._Batches(
        self._Input(
          kind, True, transforms=_AllTransforms(), num_parallel_calls=calls
        ),
        count=8,
      )
      self._AssertSame(batches, expected or batches)
      expected = batches

  @parameterized.parameters('folder', 'tfds')
  def testEveryEpochIsAPermutation(self, kind):
    generator = self._Input(kind, True, resize_mode='stretch')
    self.assertEqual(generator.num_examples, 20)
    batches = self._Batches(generator, count=15)  # Three epochs.
    images = np.concatenate([b['inputs'] for b in batches])
    epochs = [[x.tobytes() for x in images[i : i + 20]] for i in (0, 20, 40)]
    self.assertLen(set(epochs[0]), 20)
    for epoch in epochs[1:]:
      self.assertNotEqual(epoch, epochs[0])
      self.assertCountEqual(epoch, epochs[0])

  def testAugmentationIsOfItsOwnInEveryEpochAndForEverySeed(self):
    def _Images(seed):
      generator = self._Input(
        training=True,
        transforms=[inception_crop.InceptionCrop.Params()],
        random_seed=seed,
      )
      return [
        x.tobytes()
        for b in self._Batches(generator, count=10)
        for x in b['inputs']
      ]

    self.assertLen({*_Images(1), *_Images(2)}, 80)

  def testTransformsComeInOrder(self):
    # A flip moves what the cutout hides only where it comes after it.
    hide = cutout.Cutout.Params().Set(size=9)
    mirror = flip.RandomFlip.Params().Set(probability=1.0)
    plain, first, second = (
      self._Batches(self._Input(training=True, transforms=x), count=1)[0]
      for x in ([mirror], [hide, mirror], [mirror, hide])
    )
    self.assertNotAllEqual(first['inputs'], second['inputs'])
    for batch in (first, second):
      hidden = np.any(batch['inputs'] != plain['inputs'], axis=-1)
      self.assertTrue(hidden.any((1, 2)).all())

  def testTransformsAreForTrainingOnly(self):
    plain = self._Batches(self._Input())
    batches = self._Batches(self._Input(transforms=_AllTransforms()))
    for batch in batches:
      # What a head with mixup asks for: nothing is mixed.
      self.assertAllEqual(batch.pop('mixed_labels'), batch['labels'])
      self.assertAllEqual(batch.pop('mix'), batch['weights'])
    self._AssertSame(batches, plain)

  def testMixup(self):
    transforms = [mixup.Mixup.Params()]
    generator = self._Input(training=True, transforms=transforms)
    batch = self._Batches(generator, count=1)[0]
    plain = self._Batches(self._Input(training=True), count=1)[0]
    spec = generator.BatchSpec()
    self.assertEqual(
      set(spec), {'inputs', 'labels', 'weights', 'mixed_labels', 'mix'}
    )
    self.assertEqual(generator.Dataset().element_spec, dict(spec))
    share = batch['mix'][:, np.newaxis, np.newaxis, np.newaxis]
    images = plain['inputs']
    expected = share * images + (1 - share) * np.roll(images, 1, axis=0)
    self.assertAllClose(batch['inputs'], expected)
    self.assertAllEqual(batch['mixed_labels'], np.roll(plain['labels'], 1))
    self.assertNotIn('mix', self._Input(training=True).BatchSpec())
    evaluation = self._Input(transforms=transforms)
    self.assertEqual(set(evaluation.BatchSpec()), set(spec))


class EvaluationTest(_Base):
  @parameterized.parameters(
    ('folder', 4, 1),
    ('folder', 10, 0),
    ('tfds', 10, 1),
    ('tfds', 4, 2),
  )
  def testOnePass(self, kind, batch_size, position):
    generator = self._Input(kind, batch_size=batch_size)
    batches = self._Batches(generator, position)
    self.assertLen(batches, generator.num_batches - position)
    if position == generator.num_batches:
      return
    weights = np.concatenate([b['weights'] for b in batches])
    count = 10 - position * batch_size
    self.assertAllEqual(weights, [1.0] * count + [0.0] * (len(weights) - count))
    images = np.concatenate([b['inputs'] for b in batches])[:count]
    everything = self._Batches(self._Input(kind, batch_size=10))[0]
    self.assertLen({x.tobytes() for x in everything['inputs']}, 10)
    self.assertAllEqual(images, everything['inputs'][10 - count :])
    labels = np.concatenate([b['labels'] for b in batches])
    self.assertAllEqual(labels[:count], everything['labels'][10 - count :])

  def testSpec(self):
    generator = self._Input()
    self.assertEqual(
      generator.Dataset().element_spec, dict(generator.BatchSpec())
    )
    for name, value in self._Batches(generator)[-1].items():
      spec = generator.BatchSpec()[name]
      self.assertEqual(
        (value.shape, value.dtype), (tuple(spec.shape), spec.dtype)
      )

  def testPixels(self):
    batch = self._Batches(self._Input(crop_fraction=0.5))[0]
    encoded = tf.io.read_file(os.path.join(self._folder, 'val/cat/0.jpg'))
    image = tf.image.central_crop(tf.io.decode_jpeg(encoded), 0.5)
    image = tf.image.resize(image, [_SIZE, _SIZE]).numpy()
    expected = (image / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    # The last column depends on neighbours that are cut off.
    self.assertAllClose(batch['inputs'][0][:, :-2], expected[:, :-2], atol=1e-5)

  def testParamsMatter(self):
    images = {
      self._Batches(self._Input(**kwargs), count=1)[0]['inputs'].tobytes()
      for kwargs in (
        {},
        {'resize_mode': 'square'},
        {'resize_mode': 'stretch'},
        {'crop_fraction': 0.5},
        {'mean': [0.5, 0.5, 0.5]},
        {'std': [1.0, 1.0, 1.0]},
        {'antialias': True},
      )
    }
    self.assertLen(images, 7)

  def testTrainingSeesTheSamePartWithoutACrop(self):
    train = self._Batches(self._Input('tfds', True), count=5)
    values = [round(float(x[0, 0, 0]), 4) for b in train for x in b['inputs']]
    expected = (np.arange(20) / 255 - 0.485) / 0.229
    self.assertAllClose(np.sort(values), expected, atol=1e-3)

  def testLabels(self):
    names = self._Input().class_names
    self.assertEqual(names, ('cat', 'dog'))
    plain = self._Batches(self._Input(num_classes=2))
    moved = self._Batches(self._Input(num_classes=3, label_offset=1))
    for a, b in zip(plain, moved, strict=True):
      weight = a['weights'].astype(np.int32)
      self.assertAllEqual(weight * (a['labels'] + 1), b['labels'])

  def testSeveralFormats(self):
    folder = self.create_tempdir().full_path
    image = test_pictures.Picture(1)
    for i, (ending, encode) in enumerate(
      {'png': tf.io.encode_png, 'JPEG': tf.io.encode_jpeg}.items()
    ):
      for part in ('train', 'val'):
        path = os.path.join(folder, part, 'cat', f'{i}.{ending}')
        os.makedirs(os.path.dirname(path), exist_ok=True)
        tf.io.write_file(path, encode(image))
    batch = self._Batches(
      self._Input(source=self._Source(folder=folder), batch_size=2)
    )[0]
    self.assertAllClose(batch['inputs'][0], batch['inputs'][1], atol=0.5)

  def testMockData(self):
    tfds = tfds_data.Import()
    source = tfds_source.TfdsSource.Params().Set(
      dataset='imagenet2012', data_dir=self.create_tempdir().full_path
    )
    with tfds.testing.mock_data(num_examples=5):
      evaluation = self._Batches(self._Input(source=source, num_classes=1000))
      training = self._Batches(
        self._Input(source=source, training=True, transforms=_AllTransforms()),
        count=6,
      )
    self.assertAllEqual([b['weights'].sum() for b in evaluation], [4.0, 1.0])
    self.assertLen(training, 6)
    for batch in training:
      self.assertTrue(np.isfinite(batch['inputs']).all())


if __name__ == '__main__':
  tf.test.main()
