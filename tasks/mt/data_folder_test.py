"""Tests of data_folder; see those of prepared_text and translation_data."""

import json
import os

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import data_folder, test_translation_data, test_vocabulary


class DataFolderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._index = test_translation_data.Write(self._folder)
    self._path = os.path.join(self._folder, 'data.json')

  def testReadsWhatWasWritten(self):
    index = data_folder.ReadIndex(self._path, self.fail)
    self.assertEqual(index, self._index)
    vocab = data_folder.ReadVocabulary(self._folder, index)
    self.assertEqual(vocab.model, test_vocabulary.Get().model)
    rows = data_folder.ReadText(os.path.join(self._folder, 'test.de.tsv'))
    self.assertEqual([len(row) for row in rows], [2] * 13)

  def testFormat(self):
    for value, found in (({'format': 7}, 7), ([], None)):
      with open(self._path, 'w') as f:
        json.dump(value, f)
      with self.assertRaisesRegex(user_error.UserError, f'^it has {found}$'):
        data_folder.ReadIndex(self._path, lambda x: f'it has {x}')

  def testOtherVocabulary(self):
    with self.assertRaisesRegex(
      user_error.UserError, 'vocab.model is not the vocabulary that the records'
    ):
      data_folder.ReadVocabulary(
        self._folder, self._index | {'vocab_sha256': '0'}
      )

  def testNoText(self):
    path = os.path.join(self._folder, 'none.tsv')
    with self.assertRaisesRegex(user_error.UserError, f'^{path}: '):
      data_folder.ReadText(path)


if __name__ == '__main__':
  absltest.main()
