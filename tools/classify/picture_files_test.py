"""Tests of picture_files."""

import os

import numpy as np
from absl.testing import absltest

from tools.classify import picture_files, saved_classifier


class _Classifier:
  """The class of a picture is its length; some cannot be classified."""

  def __init__(self):
    self.batches = []

  def Probabilities(self, pictures):
    self.batches.append(list(pictures))
    if any(picture.startswith(b'bad') for picture in pictures):
      raise saved_classifier.BadPictureError('it is bad')
    return np.array([[len(picture)] for picture in pictures], np.float32)


class ClassifyTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir()
    self._classifier = _Classifier()

  def _Files(self, contents):
    return [
      self._folder.create_file(f'{i}.png', content=text).full_path
      for i, text in enumerate(contents)
    ]

  def _Classify(self, files, batch_size):
    batches = picture_files.Classify(self._classifier, files, batch_size)
    return [
      [(x.file, x.error or float(x.probabilities[0])) for x in batch]
      for batch in batches
    ]

  def testBatches(self):
    files = self._Files(['a', 'bb', 'ccc', 'dddd', 'eeeee'])
    results = self._Classify(files, 2)
    self.assertEqual(
      results,
      [
        [(files[0], 1), (files[1], 2)],
        [(files[2], 3), (files[3], 4)],
        [(files[4], 5)],
      ],
    )
    self.assertLen(self._classifier.batches, 3)

  def testBadOnesDoNotStopTheRest(self):
    contents = ['x' * i for i in range(32)]
    contents[5] = contents[6] = contents[30] = 'bad'
    files = self._Files(contents)
    files[9] = os.path.join(self._folder.full_path, 'missing.png')
    files[10] = self._folder.full_path
    (results,) = self._Classify(files, 32)
    expected = [float(i) for i in range(32)]
    for i in (5, 6, 30):
      expected[i] = 'it is bad'
    expected[9] = 'No such file or directory'
    expected[10] = 'Is a directory'
    self.assertEqual(results, list(zip(files, expected, strict=True)))
    # Found by halves, not one by one.
    self.assertLess(len(self._classifier.batches), 24)

  def testNothingToClassify(self):
    (results,) = self._Classify(['no.png', 'none.png'], 2)
    self.assertEqual([x[1] for x in results], ['No such file or directory'] * 2)
    self.assertEmpty(self._classifier.batches)


if __name__ == '__main__':
  absltest.main()
