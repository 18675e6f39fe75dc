"""Tests of translation_data."""

import json
import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import test_translation_data, test_vocabulary, translation_data

TranslationData = translation_data.TranslationData


class TranslationDataTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.index = test_translation_data.Write(self.folder)

  def _Rewrite(self, **values):
    with open(f'{self.folder}/data.json', 'w') as f:
      json.dump(self.index | values, f)

  def testGroups(self):
    data = TranslationData(self.folder, 'test')
    self.assertEqual(
      [
        (x.name, x.source_language, x.target_language, x.size)
        for x in data.groups
      ],
      [
        ('de', 'en', 'de', 13),
        ('de-en', 'de', 'en', 13),
        ('pt_BR', 'en', 'pt_BR', 4),
        ('pt_BR-en', 'pt_BR', 'en', 4),
      ],
    )
    for group in data.groups:
      self.assertTrue(all(map(os.path.isfile, (*group.shards, group.text))))
    self.assertEqual(
      data.num_tokens, sum(map(sum, self.index['tokens']['test'].values()))
    )
    self.assertEqual(data.vocab_size, 312)
    self.assertEqual(data.vocab.tags, test_vocabulary.Get().tags)

  @parameterized.parameters(
    (['pt_BR'], 'both', ['pt_BR', 'pt_BR-en']),
    (['pt_BR', 'de', 'de'], 'xx-en', ['de-en', 'pt_BR-en']),
    ([], 'en-xx', ['de', 'pt_BR']),
  )
  def testSelection(self, languages, directions, names):
    data = TranslationData(
      self.folder, 'train', languages=languages, directions=directions
    )
    self.assertEqual([x.name for x in data.groups], names)

  def testGroupsWithoutExamplesAreAbsent(self):
    data = TranslationData(self.folder, 'dev')
    self.assertEqual([x.name for x in data.groups], ['de', 'de-en'])

  @parameterized.parameters('', '/no/such/folder', None)
  def testNoData(self, folder):
    if folder is None:
      folder = self.create_tempdir('empty').full_path
    with self.assertRaisesRegex(
      user_error.UserError, r'tools\.mt\.prepare --source=django'
    ):
      TranslationData(folder, 'train')

  def testErrors(self):
    def _Raises(message, *args, **kwargs):
      with self.assertRaisesRegex(user_error.UserError, message):
        TranslationData(self.folder, *args, **kwargs)

    _Raises(
      "no language 'pt_br'.*did you mean 'pt_BR'", 'dev', languages=['pt_br']
    )
    _Raises('no dev examples of pt_BR', 'dev', languages=['pt_BR'])
    shard = self.index['files']['train']['de'][0]
    os.unlink(f'{self.folder}/{shard}')
    _Raises(f'{shard} is missing', 'train')
    self._Rewrite(format=2)
    _Raises('has format 2, and this program reads 1; prepare', 'train')
    self._Rewrite(files=self.index['files'] | {'test': {}})
    _Raises('no test examples, only those of train, dev.*--test_share', 'test')
    with open(f'{self.folder}/data.json', 'w') as f:
      f.write('{"format": 1,')
    _Raises('data.json: ', 'train')
    with open(f'{self.folder}/data.json', 'w') as f:
      f.write('{"format": 1}')
    _Raises("it lacks 'vocab_size'", 'train')

  def testVocabularyOfOtherData(self):
    self._Rewrite(vocab_sha256='0')
    with self.assertRaisesRegex(user_error.UserError, 'not the vocabulary'):
      _ = TranslationData(self.folder, 'train').vocab


if __name__ == '__main__':
  absltest.main()
