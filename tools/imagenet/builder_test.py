"""Tests of builder: with TFDS's own ImageNet builder on tiny archives."""

import os
import tarfile

import numpy as np
import tensorflow as tf

from tasks.image import (
  flip,
  image_input,
  inception_crop,
  picture,
  test_pictures,
  tfds_source,
)
from tools.imagenet import builder, preparation_progress, test_archives


class BuilderTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._data_dir = os.path.join(self.create_tempdir().full_path, 'data')
    folder = os.path.join(self.create_tempdir().full_path, 'tars')
    self._archives = test_archives.Make(folder)
    self._lines = []

  def _Prepare(self):
    progress = preparation_progress.PreparationProgress(
      os.path.join(self._data_dir, builder.NAME),
      interval=1000.0,
      show=self._lines.append,
    )
    with progress:
      return builder.Prepare(self._data_dir, *self._archives, progress)

  def _Input(self, **kwargs):
    params = image_input.ImageInput.Params().Set(
      source=tfds_source.TfdsSource.Params().Set(
        dataset=builder.NAME, data_dir=self._data_dir
      ),
      image_size=16,
      num_classes=1001,
      label_offset=1,
      batch_size=4,
    )
    return params.Set(**kwargs).Instantiate()

  def testWhatIsPreparedIsRead(self):
    folder = self._Prepare()
    self.assertStartsWith(folder, os.path.join(self._data_dir, 'imagenet2012/'))
    self.assertTrue(os.path.isfile(os.path.join(folder, 'dataset_info.json')))
    self.assertIn('reading ILSVRC2012_img_train.tar: 12 images', self._lines)
    self.assertIn('reading ILSVRC2012_img_val.tar: 5 images', self._lines)

    params = self._Input().params.Copy()
    params.source.split = 'validation'
    evaluation = params.Instantiate()
    self.assertEqual(evaluation.num_examples, 5)
    self.assertLen(evaluation.class_names, 1000)
    self.assertEqual(evaluation.class_names[:3], test_archives.CLASSES)
    batches = list(evaluation.Dataset().as_numpy_iterator())
    self.assertAllEqual([b['weights'].sum() for b in batches], [4.0, 1.0])
    images = np.concatenate([b['inputs'] for b in batches])[:5]
    expected = [self._Expected(evaluation, 100 + i) for i in range(5)]
    # TFDS shuffles.
    order = [
      int(np.abs(np.array(expected) - x).sum((1, 2, 3)).argmin())
      for x in images
    ]
    self.assertCountEqual(order, range(5))
    self.assertAllClose(images, np.array(expected)[order], atol=1e-5)

    training = self._Input(
      training=True,
      transforms=[
        inception_crop.InceptionCrop.Params(),
        flip.RandomFlip.Params(),
      ],
    )
    self.assertEqual(training.num_examples, 12)
    batches = list(training.Dataset().take(6).as_numpy_iterator())
    labels = np.concatenate([b['labels'] for b in batches])
    for epoch in (labels[:12], labels[12:]):
      self.assertCountEqual(epoch, [1, 2, 3] * 4)

  def _Expected(self, generator, seed):
    """What evaluation makes of a picture."""
    image = picture.DecodeBox(
      tf.constant(test_pictures.Jpeg(seed)),
      lambda size: picture.CentreBox(size, 'crop', 0.875),
    )
    return generator.Normalise(picture.Resize(image, 16)).numpy()

  def testNothingIsLeftBehind(self):
    with open(self._archives[1], 'wb') as f:
      f.write(b'?' * 20_000)
    with self.assertRaises(tarfile.TarError):
      self._Prepare()
    folder = os.path.join(self._data_dir, builder.NAME)
    self.assertEmpty(os.listdir(folder) if os.path.isdir(folder) else [])


class CheckArchiveTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    folder = os.path.join(self.create_tempdir().full_path, 'tars')
    self._archives = test_archives.Make(folder)

  def testWhole(self):
    for path in self._archives:
      builder.CheckArchive(path)

  def testIncomplete(self):
    for path in self._archives:
      size = os.path.getsize(path)
      with tarfile.open(path) as archive:
        last = archive.getmembers()[-1].offset
      for cut in (size // 2, last, last + 700):
        os.truncate(path, cut)
        with self.assertRaises(tarfile.TarError):
          builder.CheckArchive(path)

  def testDamaged(self):
    for path in self._archives:
      with tarfile.open(path) as archive:
        offset = archive.getmembers()[1].offset
      with open(path, 'r+b') as f:
        f.seek(offset)
        f.write(b'?' * 512)
      with self.assertRaisesRegex(
        tarfile.TarError,
        f'{path} is damaged or incomplete: its table ends at byte {offset:,} ',
      ):
        builder.CheckArchive(path)


if __name__ == '__main__':
  tf.test.main()
