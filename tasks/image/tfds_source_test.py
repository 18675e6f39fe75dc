"""Tests of tfds_source, on datasets that TFDS itself wrote."""

import os
import pathlib
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_input, user_error
from tasks.image import picture, test_pictures, tfds_data, tfds_source

_COUNTS = {'train': 50, 'test': 7}


class TfdsSourceTest(tf.test.TestCase, parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._root = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, cls._root)
    test_pictures.MakeTfds(cls._root, 'beasts', _COUNTS, num_files=5)

  def _Source(self, **kwargs):
    params = tfds_source.TfdsSource.Params()
    params.Set(data_dir=self._root, dataset='beasts')
    return params.Set(**kwargs).Instantiate()

  def _Read(self, source, start, count, *, training=False, seed=3):
    """(number, label, name) of each example."""
    examples = source.Examples(start, training=training, seed=seed)

    def _Load(element):
      example = examples.load(element)
      image = picture.DecodeBox(
        example['image'], lambda size: tf.constant([0, 0, 1, 1])
      )
      return image[0, 0, 0], example['label'], examples.name(element)

    dataset = examples.elements.take(count).map(_Load).as_numpy_iterator()
    return [(int(n), int(label), name.decode()) for n, label, name in dataset]

  def testWhatItHolds(self):
    source = self._Source()
    self.assertEqual(source.class_names, ('ape', 'bee', 'cat'))
    self.assertEqual(source.num_examples, 50)
    self.assertEqual(self._Source(split='test').num_examples, 7)

  def testEvaluationIsOnePass(self):
    read = self._Read(self._Source(), 0, 99)
    self.assertCountEqual([n for n, *_ in read], range(50))
    self.assertEqual([label for _, label, _ in read], [n % 3 for n, *_ in read])
    self.assertEqual(self._Read(self._Source(), 33, 99), read[33:])
    files = [f'beasts-train.tfrecord-0000{i}-of-00005' for i in range(5)]
    names = [
      os.path.join(self._root, 'beasts/1.0.0', f'{file}, record {place}')
      for file, size in zip(files, self._Lengths(), strict=True)
      for place in range(size)
    ]
    self.assertEqual([name for *_, name in read], names)

  def _Lengths(self):
    builder = tfds_data.Builder(self._root, 'beasts', download=False)[0]
    return builder.info.splits['train'].shard_lengths

  @parameterized.parameters('train[:98%]', 'train[20:31]', 'train[45:]+test')
  def testSlices(self, split):
    source = self._Source(split=split)
    expected = {
      'train[:98%]': self._Read(self._Source(), 0, 49),
      'train[20:31]': self._Read(self._Source(), 20, 11),
      'train[45:]+test': self._Read(self._Source(), 45, 5)
      + self._Read(self._Source(split='test'), 0, 99),
    }[split]
    self.assertEqual(source.num_examples, len(expected))
    self.assertEqual(self._Read(source, 0, 99), expected)
    # In training likewise.
    read = self._Read(source, 0, len(expected), training=True)
    self.assertCountEqual(read, expected)
    self.assertNotEqual(read, expected)

  def testTrainingIsAPermutationOfEachEpoch(self):
    source = self._Source(files_at_a_time=2)
    read = self._Read(source, 0, 150, training=True)
    numbers = np.reshape([n for n, *_ in read], [3, 50])
    self.assertAllEqual(np.sort(numbers, 1), [range(50)] * 3)
    self.assertLen(np.unique(numbers, axis=0), 3)
    self.assertNotEqual(read, self._Read(source, 0, 150, training=True, seed=4))
    for start in (13, 50, 88):
      again = self._Read(
        self._Source(files_at_a_time=2), start, 40, training=True
      )
      self.assertEqual(again, read[start : start + 40])

  def testWindowIsSomeMegabytes(self):
    files = [
      os.path.join(self._root, 'beasts/1.0.0', x)
      for x in os.listdir(os.path.join(self._root, 'beasts/1.0.0'))
      if 'train' in x
    ]
    size = sum(map(os.path.getsize, files)) / 50
    window = self._Source(shuffle_megabytes=2)._Window()
    self.assertAllClose(window * size, 2e6, rtol=0.1)

  def testSkippedGroupsAreNotRead(self):
    root = self.create_tempdir().full_path
    shutil.copytree(self._root, root, dirs_exist_ok=True)
    source = self._Source(data_dir=root, split='train', files_at_a_time=1)
    read = self._Read(source, 0, 50, training=True)
    first = read[0][2].partition(',')[0]
    size = sum(x[2].startswith(first) for x in read)
    os.truncate(first, 0)
    again = self._Read(source, size, 8, training=True)
    self.assertEqual(again, read[size : size + 8])
    with self.assertRaises(tf.errors.InvalidArgumentError):
      self._Read(source, size - 1, 1, training=True)

  @parameterized.parameters('cut', 'empty', 'changed', 'removed')
  def testDamagedFile(self, damage):
    root = self.create_tempdir().full_path
    shutil.copytree(self._root, root, dirs_exist_ok=True)
    source = self._Source(data_dir=root, split='test')
    self.assertEqual(source.num_examples, 7)
    files = [x for *_, x in self._Read(source, 0, 7)]
    file = next(x for x in files if x.endswith('record 1')).partition(',')[0]
    data = pathlib.Path(file).read_bytes()
    changed = {
      'cut': data[:-5],
      'empty': b'',
      'changed': data[:-20] + b'?' + data[-19:],
    }
    if damage == 'removed':
      os.remove(file)
    else:
      pathlib.Path(file).write_bytes(changed[damage])
    with self.assertRaisesRegex(
      user_error.UserError,
      f'{file} is damaged or incomplete from record . on: ',
    ):
      with base_input.UserErrors():
        self._Read(source, 0, 99)

  def testMissingFile(self):
    root = self.create_tempdir().full_path
    shutil.copytree(self._root, root, dirs_exist_ok=True)
    file = os.path.join(
      root, 'beasts/1.0.0/beasts-train.tfrecord-00003-of-00005'
    )
    os.remove(file)
    with self.assertRaisesRegex(
      user_error.UserError,
      f'beasts: 1 of 5 files are missing, the first is {file}: ',
    ):
      _ = self._Source(data_dir=root).num_examples
    # What is not of the split may be missing.
    self.assertEqual(self._Source(data_dir=root, split='test').num_examples, 7)

  def testMissingData(self):
    with self.assertRaisesRegex(
      user_error.UserError, 'imagenet2012: no prepared data in .* Put ILSVRC'
    ):
      _ = self._Source(dataset='imagenet2012').num_examples
    with self.assertRaisesRegex(user_error.UserError, 'which dataset.'):
      _ = self._Source(dataset='').num_examples

  def testUnknownSplit(self):
    with self.assertRaisesRegex(
      user_error.UserError,
      "split='valid': beasts has the splits test, train, and slices of them",
    ):
      _ = self._Source(split='valid').num_examples

  def testNoImageClassificationSet(self):
    with self.assertRaisesRegex(
      user_error.UserError,
      r"beasts has no ClassLabel feature 'extra'; it has extra \(Text\), image "
      r'\(Image\), label \(ClassLabel\). Set input.source.image_key and',
    ):
      _ = self._Source(label_key='extra').num_examples

  def testOtherFileFormat(self):
    root = self.create_tempdir().full_path
    test_pictures.MakeTfds(
      root, 'beasts', {'train': 3}, file_format='array_record'
    )
    with self.assertRaisesRegex(
      user_error.UserError, 'holds array_record files; only tfrecord can be'
    ):
      _ = self._Source(data_dir=root).num_examples

  @parameterized.parameters('imagenet2012', 'cifar10', 'oxford_iiit_pet')
  def testMockData(self, dataset):
    tfds = tfds_data.Import()
    with tfds.testing.mock_data(num_examples=6):
      source = self._Source(
        data_dir=self.create_tempdir().full_path, dataset=dataset
      )
      self.assertEqual(source.num_examples, 6)
      self.assertIn(len(source.class_names), (10, 37, 1000))
      straight = self._Read(source, 0, 9)
      self.assertLen(straight, 6)
      read = self._Read(source, 0, 18, training=True)
    epochs = [sorted(read[i : i + 6]) for i in (0, 6, 12)]
    self.assertEqual(epochs, [sorted(straight)] * 3)

  def testMakingOneNeedsNoData(self):
    self._Source(data_dir='/nonexistent')
    with self.assertRaisesRegex(ValueError, 'files_at_a_time=0 must be 1 or'):
      self._Source(files_at_a_time=0)


if __name__ == '__main__':
  tf.test.main()
