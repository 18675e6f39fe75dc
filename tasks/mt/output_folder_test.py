"""Tests of output_folder."""

import os

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import output_folder

_INDEX = 'data.json'


class OutputFolderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path
    self._path = os.path.join(self._root, 'new', 'data')

  def _Write(self, text, overwrite=False, fail=False):
    with output_folder.Writing(
      self._path, index=_INDEX, overwrite=overwrite
    ) as folder:
      with open(os.path.join(folder, _INDEX), 'w') as f:
        f.write(text)
      if fail:
        raise KeyboardInterrupt

  def _Text(self):
    with open(os.path.join(self._path, _INDEX)) as f:
      return f.read()

  def testAllOrNothing(self):
    with self.assertRaises(KeyboardInterrupt):
      self._Write('1', fail=True)
    self.assertEmpty(os.listdir(os.path.dirname(self._path)))
    self._Write('2')
    self.assertEqual(self._Text(), '2')
    with self.assertRaises(KeyboardInterrupt):
      self._Write('3', overwrite=True, fail=True)
    self.assertEqual(self._Text(), '2')
    with self.assertRaisesRegex(user_error.UserError, 'not empty; .*--overwr'):
      self._Write('4')
    self._Write('5', overwrite=True)
    self.assertEqual(self._Text(), '5')
    self.assertEqual(os.listdir(os.path.dirname(self._path)), ['data'])

  def testAnEmptyFolderIsTaken(self):
    os.makedirs(self._path)
    self._Write('1')
    self.assertEqual(self._Text(), '1')

  def testMistakes(self):
    for path, overwrite, problem in (
      ('', False, '--output is missing'),
      ('/proc', False, '--output=/proc is not empty; .*--overwrite'),
      ('/proc', True, '--output=/proc .* no data.json, so --overwrite leaves'),
      ('/proc/uptime', True, '--output=/proc/uptime is a file'),
    ):
      with self.assertRaisesRegex(user_error.UserError, problem):
        output_folder.Check(path, index=_INDEX, overwrite=overwrite)
    with self.assertRaisesRegex(user_error.UserError, '--output=/proc/none: '):
      with output_folder.Writing('/proc/none', index=_INDEX, overwrite=False):
        self.fail('not reached')


if __name__ == '__main__':
  absltest.main()
