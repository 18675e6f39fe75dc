"""Tests of picture_folder."""

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.image import picture_folder


class PictureFolderTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path

  def _Add(self, *names):
    for name in names:
      path = os.path.join(self._root, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      open(path, 'w').close()

  def _Find(self, split='train', validation_share=0.1, test_share=0.1):
    return picture_folder.Find(
      self._root,
      split,
      validation_share=validation_share,
      test_share=test_share,
    )

  def _AssertError(self, text, split='train', **kwargs):
    with self.assertRaisesRegex(user_error.UserError, text):
      self._Find(split, **kwargs)

  def testParts(self):
    self._Add('train/cat/2.jpg', 'train/cat/1.JPEG', 'train/ape/a.png')
    self._Add('val/cat/x.bmp', 'val/ape/y.gif', 'test/cat/t.jpg')
    self._Add('test/ape/t.jpg', 'README.txt', 'train/cat/notes.txt')
    self._Add('train/cat/.hidden.jpg', 'train/.cache/x.jpg')
    pictures = self._Find()
    self.assertEqual(pictures.folder, os.path.join(self._root, 'train'))
    self.assertEqual(pictures.class_names, ('ape', 'cat'))
    self.assertEqual(pictures.names, ['ape/a.png', 'cat/1.JPEG', 'cat/2.jpg'])
    self.assertEqual(pictures.labels, [0, 1, 1])
    self.assertEqual(self._Find('validation').names, ['ape/y.gif', 'cat/x.bmp'])
    self.assertEqual(self._Find('test').names, ['ape/t.jpg', 'cat/t.jpg'])

  @parameterized.parameters('val', 'validation', 'test')
  def testOneHeldOutFolderIsBoth(self, folder):
    self._Add('train/cat/1.jpg', f'{folder}/cat/2.jpg')
    self.assertEqual(self._Find('validation').names, ['cat/2.jpg'])
    self.assertEqual(self._Find('test').names, ['cat/2.jpg'])

  def testSplitByHash(self):
    self._Add(*(f'{c}/{i}.jpg' for c in ('ape', 'cat') for i in range(500)))
    parts = {
      split: self._Find(split, test_share=0.2).names
      for split in picture_folder.SPLITS
    }
    names = [name for part in parts.values() for name in part]
    self.assertLen(set(names), 1000)
    self.assertLen(names, 1000)
    self.assertBetween(len(parts['test']), 160, 240)
    self.assertBetween(len(parts['validation']), 70, 130)
    # A picture stays in its part when others come or go.
    os.remove(os.path.join(self._root, 'cat', '7.jpg'))
    self._Add('cat/new.jpg')
    changed = {'cat/7.jpg', 'cat/new.jpg'}
    for split, part in parts.items():
      self.assertEqual(
        set(self._Find(split, test_share=0.2).names) - changed,
        set(part) - changed,
      )
    # The rule must not change: results are compared by it.
    self.assertEqual(parts['test'][:4], _FIRST_OF_TEST)

  def testNoFolder(self):
    self._root = os.path.join(self._root, 'missing')
    self._AssertError(
      r'missing, the folder of pictures, does not exist: set '
      r'--data_dir=DIR .*; expected are pictures in DIR/train/'
    )
    self._root = ''
    self._AssertError('which folder are the pictures in. Set --data_dir=DIR')

  def testNoPictures(self):
    self._AssertError(r'has no pictures \(.jpg, .jpeg, .png, .bmp, .gif\) in')
    self._Add('cat/notes.txt')
    self._AssertError('has no pictures')

  def testEmptyClass(self):
    self._Add('train/cat/1.jpg', 'train/dog/1.txt', 'val/cat/1.jpg')
    self._Add('val/dog/1.jpg')
    self._AssertError(r'train/dog has no pictures \(.*\): add some, or remove')
    os.rename(f'{self._root}/train/dog/1.txt', f'{self._root}/train/dog/1.jpg')
    os.remove(f'{self._root}/val/dog/1.jpg')
    self._AssertError('val/dog has no pictures', 'validation')

  def testClassesDiffer(self):
    self._Add('train/cat/1.jpg', 'val/cat/1.jpg', 'val/dog/1.jpg')
    for split in ('train', 'test'):
      self._AssertError('the class dog is in val, but not in train', split)
    self._Add('train/dog/1.jpg', 'train/emu/1.jpg')
    self._AssertError('the class emu is in train, but not in val')

  def testNoHeldOutFolder(self):
    self._Add('train/cat/1.jpg')
    self.assertEqual(self._Find().names, ['cat/1.jpg'])
    self._AssertError(
      'has a folder train, but none for the held-out part: put', 'test'
    )

  def testTooFewToSplit(self):
    self._Add('cat/1.jpg')
    self._AssertError(
      'no picture falls into the part test', 'test', test_share=0.0
    )
    self._AssertError('cat has no pictures for training', test_share=0.999)


_FIRST_OF_TEST = ['ape/104.jpg', 'ape/105.jpg', 'ape/106.jpg', 'ape/107.jpg']


if __name__ == '__main__':
  absltest.main()
