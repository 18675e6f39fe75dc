"""Tests of folder_source."""

import os

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_input
from tasks.image import folder_source

_CLASSES = {'ape': 4, 'cat': 7}


class FolderSourceTest(tf.test.TestCase, parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path
    for name, count in _CLASSES.items():
      for part in ('train', 'val'):
        os.makedirs(os.path.join(self._root, part, name))
        for i in range(count):
          path = os.path.join(self._root, part, name, f'{i}.jpg')
          with open(path, 'w') as f:
            f.write(f'{part} {name} {i}')

  def _Source(self, **kwargs):
    params = folder_source.FolderSource.Params()
    return params.Set(data_dir=self._root, **kwargs).Instantiate()

  def _Read(self, source, start, count, training):
    examples = source.Examples(start, training=training, seed=3)
    dataset = examples.elements.take(count)
    return [
      (x['image'].decode(), int(x['label']), name.decode())
      for x, name in dataset.map(
        lambda x: (examples.load(x), examples.name(x))
      ).as_numpy_iterator()
    ]

  def testClasses(self):
    source = self._Source()
    self.assertEqual(source.class_names, ('ape', 'cat'))
    self.assertEqual(source.num_examples, 11)

  def testEvaluation(self):
    source = self._Source(split='validation')
    expected = [
      (
        f'val {name} {i}',
        label,
        os.path.join(self._root, 'val', name, f'{i}.jpg'),
      )
      for label, (name, count) in enumerate(_CLASSES.items())
      for i in range(count)
    ]
    self.assertEqual(self._Read(source, 0, 99, False), expected)
    self.assertEqual(self._Read(source, 9, 99, False), expected[9:])

  def testTrainingIsAPermutationOfEachEpoch(self):
    source = self._Source()
    straight = self._Read(source, 0, 11, False)
    examples = self._Read(source, 0, 33, True)
    order = np.array([straight.index(x) for x in examples])
    self.assertAllEqual(
      order, base_input.EpochOrder(tf.range(33, dtype=tf.int64), 11, 3)
    )
    self.assertEqual(self._Read(source, 20, 13, True), examples[20:])

  def testFarPlace(self):
    read = self._Read(self._Source(), 11 * 10**9, 11, True)
    self.assertLen(set(read), 11)

  def testOnlyWhatIsTakenIsRead(self):
    os.remove(os.path.join(self._root, 'val', 'ape', '0.jpg'))
    source = self._Source(split='validation')  # Lists the folder.
    self.assertEqual(source.num_examples, 10)
    os.remove(os.path.join(self._root, 'val', 'ape', '1.jpg'))
    self.assertLen(self._Read(source, 1, 99, False), 9)
    with self.assertRaisesRegex(tf.errors.NotFoundError, 'ape/1.jpg'):
      self._Read(source, 0, 1, False)

  def testMakingOneNeedsNoData(self):
    self._root = '/nonexistent'
    self._Source()

  @parameterized.parameters(
    ({'split': 'eval'}, "split='eval' is none of train, validation, test"),
    ({'test_share': 0.9}, 'test_share=0.9 must be 0 or more and leave'),
    ({'validation_share': -0.1}, 'validation_share=-0.1, test_share=0.1 must'),
  )
  def testErrors(self, kwargs, text):
    with self.assertRaisesRegex(ValueError, text):
      self._Source(**kwargs)


if __name__ == '__main__':
  tf.test.main()
