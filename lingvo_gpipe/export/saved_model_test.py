"""Tests of saved_model."""

import os
from unittest import mock

import tensorflow as tf

from lingvo_gpipe import user_error
from lingvo_gpipe.export import saved_model


def _Module(value):
  """A module and the function that gives its value."""
  module = tf.Module()
  module.value = tf.Variable(value)
  function = tf.function(
    lambda: {'value': module.value.read_value()}, input_signature=[]
  )
  return module, {'get': function.get_concrete_function()}


def _Write(value, path, assets=None, *, overwrite=False):
  module, functions = _Module(value)
  saved_model.Write(module, functions, assets or {}, path, overwrite=overwrite)


def _Read(path):
  return float(tf.saved_model.load(path).signatures['get']()['value'])


class SavedModelTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, 'models', 'mine')

  def testWrites(self):
    _Write(3.0, self._path, {'b.txt': 'text of b\n', 'a.json': '{}'})
    self.assertEqual(_Read(self._path), 3.0)
    assets = os.path.join(self._path, 'assets')
    self.assertCountEqual(os.listdir(assets), ['a.json', 'b.txt'])
    with open(os.path.join(assets, 'b.txt')) as f:
      self.assertEqual(f.read(), 'text of b\n')
    # Nothing else is left.
    self.assertEqual(os.listdir(os.path.dirname(self._path)), ['mine'])

  def testEmptyDirectory(self):
    os.makedirs(self._path)
    _Write(3.0, self._path)
    self.assertEqual(_Read(self._path), 3.0)

  def testReplaces(self):
    _Write(3.0, self._path)
    with self.assertRaisesRegex(
      user_error.UserError, f'--output={self._path} is not empty.*--overwrite'
    ):
      _Write(4.0, self._path)
    self.assertEqual(_Read(self._path), 3.0)
    _Write(4.0, self._path, overwrite=True)
    self.assertEqual(_Read(self._path), 4.0)
    self.assertEqual(os.listdir(os.path.dirname(self._path)), ['mine'])

  def testFailureLeavesTheOldOne(self):
    _Write(3.0, self._path)
    full = OSError(28, 'No space left on device')
    with mock.patch.object(tf.saved_model, 'save', side_effect=full):
      with self.assertRaisesRegex(
        user_error.UserError, f'--output={self._path}: .*No space left'
      ):
        _Write(4.0, self._path, overwrite=True)
    self.assertEqual(_Read(self._path), 3.0)
    self.assertEqual(os.listdir(os.path.dirname(self._path)), ['mine'])

  def testLeavesOtherThingsAlone(self):
    precious = os.path.join(self._folder, 'precious.txt')
    with open(precious, 'w') as f:
      f.write('precious')
    for path, problem in (
      (self._folder, 'holds no SavedModel'),
      (precious, 'is a file'),
    ):
      with self.assertRaisesRegex(user_error.UserError, f'{path} .*{problem}'):
        saved_model.CheckOutput(path, overwrite=True)
    self.assertEqual(os.listdir(self._folder), ['precious.txt'])

  def testCannotWrite(self):
    with open(os.path.join(self._folder, 'file'), 'w'):
      path = os.path.join(self._folder, 'file', 'model')
    with self.assertRaisesRegex(user_error.UserError, f'--output={path}: '):
      _Write(3.0, path)


if __name__ == '__main__':
  tf.test.main()
