"""Tests of tfds_text, on datasets that TFDS itself wrote."""

import os
import shutil
import tempfile
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.image import tfds_data
from tasks.mt import parallel_text, tfds_text

Pair = parallel_text.Pair


def _Write(data_dir, name, features, splits):
  tfds = tfds_data.Import()
  with tfds_data.Quiet():
    tfds.dataset_builders.store_as_tfds_dataset(
      name=name,
      version='1.0.0',
      features=tfds.features.FeaturesDict(features),
      split_datasets={
        split: [(i, {'texts': x, 'id': str(i)}) for i, x in enumerate(examples)]
        for split, examples in splits.items()
      },
      data_dir=data_dir,
    )


class TfdsTextTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._root = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, cls._root)
    features = tfds_data.Import().features
    _Write(
      cls._root,
      'two',
      {
        'texts': features.Translation(['pt-br', 'en']),
        'id': features.Text(),
      },
      {
        'train': [{'en': f'Cat {i}', 'pt-br': f'Gato {i} ã'} for i in range(5)],
        'validation': [{'en': 'Dog', 'pt-br': 'Cão'}],
        'test': [{'en': 'Bee', 'pt-br': 'Abelha'}],
      },
    )
    _Write(
      cls._root,
      'many',
      {
        'texts': features.TranslationVariableLanguages(),
        'id': features.Text(),
      },
      {
        'train': [
          {'de': 'Hund', 'en': 'Dog', 'fr': ['Chien', 'Toutou']},
          {'de': 'Katze', 'fr': 'Chat'},
        ]
      },
    )
    _Write(
      cls._root,
      'labels',
      {'texts': features.Text(), 'id': features.Text()},
      {'train': ['a']},
    )

  def _Read(self, name, **kwargs):
    return list(tfds_text.Read(name, data_dir=self._root, **kwargs))

  def testTranslations(self):
    self.assertCountEqual(
      self._Read('two'),
      [Pair('pt_br', f'Cat {i}', f'Gato {i} ã') for i in range(5)]
      + [
        Pair('pt_br', 'Dog', 'Cão', 'dev'),
        Pair('pt_br', 'Bee', 'Abelha', 'test'),
      ],
    )

  def testVariableLanguages(self):
    self.assertCountEqual(
      self._Read('many'),
      [
        Pair('de', 'Dog', 'Hund'),
        Pair('fr', 'Dog', 'Chien'),
        Pair('fr', 'Dog', 'Toutou'),
      ],
    )

  def testMissing(self):
    with self.assertRaisesRegex(
      user_error.UserError,
      f'wmt16_translate/de-en: no prepared data in {self._root}; .*--data_dir, '
      'or let TFDS download it by --download',
    ):
      self._Read('wmt16_translate/de-en')
    self.assertFalse(
      os.path.exists(os.path.join(self._root, 'wmt16_translate'))
    )

  def testMistakes(self):
    for name, problem in (
      ('labels', 'tfds:labels is no set of translations; .* are id, texts'),
      (
        'wmt61_translate',
        "knows no such .* did you mean 'wmt13_translate', 'wmt",
      ),
      ('wmt16_translate/de-xx', 'tfds:wmt16_translate/de-xx: .*de-xx'),
    ):
      with self.assertRaisesRegex(user_error.UserError, problem):
        self._Read(name)

  def testDownloadOnlyWhereItIsAskedFor(self):
    name = 'wmt16_translate/de-en'
    with mock.patch.object(
      tfds_data.Import().core.DatasetBuilder,
      'download_and_prepare',
      side_effect=ConnectionError('no route'),
    ) as download:
      with self.assertRaisesRegex(user_error.UserError, 'no prepared data'):
        self._Read(name)
      download.assert_not_called()
      with self.assertRaisesRegex(
        user_error.UserError, f'{name}: TFDS could not download .*: no route'
      ):
        self._Read(name, download=True)


if __name__ == '__main__':
  absltest.main()
