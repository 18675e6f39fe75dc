"""Tests of logdir."""

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import logdir as logdir_lib


class LogDirTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path

  def testCreate(self):
    logdir = logdir_lib.LogDir(os.path.join(self._root, 'a', 'b'))
    logdir.Create()
    self.assertEmpty(os.listdir(logdir.path))
    logdir.Create(logdir.train_dir)
    self.assertEqual(os.listdir(logdir.path), ['train'])
    self.assertEmpty(os.listdir(logdir.train_dir))

  @parameterized.parameters('file', 'file/below', 'x' * 300)
  def testNotWritable(self, name):
    with open(os.path.join(self._root, 'file'), 'w'):
      pass
    logdir = logdir_lib.LogDir(os.path.join(self._root, name))
    with self.assertRaisesRegex(
      user_error.UserError, r'^cannot write to the directory /.*\(--logdir\)'
    ):
      logdir.Create()

  def testJson(self):
    logdir = logdir_lib.LogDir(self._root)
    self.assertIsNone(logdir.ReadJson('results.json'))
    logdir.WriteJson('results.json', {'steps': 1})
    logdir.WriteJson('results.json', {'steps': 2})
    self.assertEqual(logdir.ReadJson('results.json'), {'steps': 2})
    self.assertEqual(os.listdir(self._root), ['results.json'])

  def testText(self):
    logdir = logdir_lib.LogDir(self._root)
    logdir.WriteText('params.txt', "name : 'möwe'\n")
    with open(os.path.join(self._root, 'params.txt'), encoding='utf-8') as f:
      self.assertEqual(f.read(), "name : 'möwe'\n")


if __name__ == '__main__':
  absltest.main()
