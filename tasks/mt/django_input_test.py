"""Tests of django_input."""

import os
from unittest import mock

import tensorflow as tf

from lingvo_gpipe import user_error
from tasks.mt import django_input, preparation, test_translation_data


class DjangoInputTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._cache = self.create_tempdir().full_path
    self.enter_context(
      mock.patch.dict(os.environ, {'XDG_CACHE_HOME': self._cache})
    )

  def _Input(self, **kwargs):
    p = django_input.DjangoInput.Params().Set(
      split='test', vocab_size=4000, batch_size=8
    )
    return p.Set(**kwargs).Instantiate()

  def testIsPreparedOnFirstUseOnly(self):
    source = self._Input()
    source.BatchSpec()
    self.assertEqual(os.listdir(self._cache), [])
    self.assertLen(source.groups, 2 * 94)
    self.assertEqual(source.num_examples, 2 * 5381)
    self.assertEqual(source.vocab_size, 4000)
    folder = django_input.CacheFolder(4000)
    self.assertStartsWith(folder, self._cache)
    with mock.patch.object(preparation, 'Prepare') as prepare:
      self.assertEqual(self._Input().num_examples, 2 * 5381)
    prepare.assert_not_called()

  def testAnotherProcessWasQuicker(self):
    folder = django_input.CacheFolder(312)

    def _Prepare(*unused):
      os.makedirs(folder)
      test_translation_data.Write(folder)
      raise user_error.UserError('the folder is not empty')

    with mock.patch.object(preparation, 'Prepare', _Prepare):
      self.assertEqual(self._Input(vocab_size=0).params.vocab_size, 0)
      django_input.Ensure(folder, 312)

  def testCannotBeWritten(self):
    path = os.path.join(self._cache, 'lingvo_gpipe')
    with open(path, 'w'):
      pass
    with self.assertRaisesRegex(user_error.UserError, 'lingvo_gpipe'):
      self._Input().num_examples  # noqa: B018

  def testOtherData(self):
    folder = self.create_tempdir().full_path
    test_translation_data.Write(folder)
    source = self._Input(data_dir=folder, vocab_size=0)
    self.assertEqual(source.groups, ('de', 'de-en', 'pt_BR', 'pt_BR-en'))
    self.assertEqual(os.listdir(self._cache), [])


if __name__ == '__main__':
  tf.test.main()
