"""Tests of image_input: what is wrong with data or params."""

import itertools
import os
import shutil
import tempfile

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_input, user_error
from tasks.image import (
  flip,
  folder_source,
  image_input,
  inception_crop,
  mixup,
  test_pictures,
)

_SIZE = 16


class ImageInputErrorsTest(tf.test.TestCase, parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._root = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, cls._root)
    cls._folder = os.path.join(cls._root, 'folder')
    test_pictures.MakeFolder(
      cls._folder,
      {'train/cat': 11, 'train/dog': 9, 'val/cat': 4, 'val/dog': 6},
    )

  def _Input(self, training=False, folder=None, **kwargs):
    source = folder_source.FolderSource.Params().Set(
      data_dir=folder or self._folder,
      split='train' if training else 'validation',
    )
    params = image_input.ImageInput.Params().Set(
      source=source, image_size=_SIZE, batch_size=4, training=training
    )
    return params.Set(**kwargs).Instantiate()

  def _Batches(self, generator, count=None):
    return list(
      itertools.islice(generator.Dataset().as_numpy_iterator(), count)
    )

  def _AssertUserError(self, generator, text):
    with self.assertRaisesRegex(user_error.UserError, text):
      with base_input.UserErrors():
        self._Batches(generator, count=30)

  @parameterized.parameters(
    (True, 'train/cat/3.jpg', b''),
    (True, 'train/cat/3.jpg', 'cut'),
    (True, 'val/dog/5.jpg', 'cut'),
    (False, 'val/dog/5.jpg', b'no picture'),
    (False, 'val/dog/0.jpg', 'cut'),
  )
  def testBrokenPicture(self, training, name, data):
    folder = self.create_tempdir().full_path
    shutil.copytree(self._folder, folder, dirs_exist_ok=True)
    path = os.path.join(folder, name)
    if data == 'cut':
      data = test_pictures.Jpeg(1)[:100]
    with open(path, 'wb') as f:
      f.write(data)
    generator = self._Input(training=training, folder=folder)
    if training == name.startswith('train'):
      self._AssertUserError(generator, f'{path} cannot be read as a picture: ')
    else:
      self._Batches(generator, count=10)

  def testNumberOfClasses(self):
    self._AssertUserError(
      self._Input(num_classes=10),
      'the data has 2 classes, the model num_classes=10: cat, dog, ... of '
      f'{self._folder}',
    )
    generator = self._Input(num_classes=2, label_offset=1)
    with self.assertRaisesRegex(
      user_error.UserError,
      r'2 classes \+ label_offset=1, the model num_classes=2',
    ):
      _ = generator.num_examples

  def testMissingData(self):
    missing = os.path.join(self._root, 'missing')
    generator = self._Input(folder=missing)
    self.assertEqual(generator.BatchSpec().inputs.shape, [4, _SIZE, _SIZE, 3])
    self._AssertUserError(generator, f'{missing}, the folder of pictures, does')

  @parameterized.parameters(
    ({'resize_mode': 'fit'}, "resize_mode='fit' is none of crop, square,"),
    ({'crop_fraction': 0.0}, 'crop_fraction=0.0 must be above 0'),
    ({'image_size': 0}, 'image_size=0 must be 1 or more'),
    ({'source': None}, 'source is missing'),
  )
  def testWrongParams(self, kwargs, text):
    with self.assertRaisesRegex(ValueError, text):
      self._Input(**kwargs)

  @parameterized.parameters(
    ([flip.RandomFlip, inception_crop.InceptionCrop],),
    ([mixup.Mixup, flip.RandomFlip],),
    ([inception_crop.InceptionCrop] * 2,),
    ([folder_source.FolderSource],),
  )
  def testWrongOrderOfTransforms(self, classes):
    with self.assertRaisesRegex(
      ValueError,
      'at most one Crop, then ImageTransforms, then BatchTransforms, not '
      f'{classes[0].__name__}',
    ):
      self._Input(training=True, transforms=[x.Params() for x in classes])


if __name__ == '__main__':
  tf.test.main()
