"""Tests of sentences."""

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import sentences, test_translation_data, translation_data


class SentencesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    test_translation_data.Write(self.folder)

  def _Groups(self, split='test'):
    return translation_data.TranslationData(self.folder, split).groups

  def testRead(self):
    found = sentences.Read(self._Groups())
    self.assertLen(found, 2 * (13 + 4))
    de, de_en, pt = found[2], found[13 + 2], found[26 + 3]
    self.assertEqual(
      (de.group, de.source_language, de.target_language, de.index),
      ('de', 'en', 'de', 2),
    )
    self.assertStartsWith(de.source, '2 ')
    self.assertEndsWith(de.reference, ' 2')
    self.assertEqual((de_en.group, de_en.source), ('de-en', de.reference))
    self.assertEqual((de_en.index, de_en.reference), (2, de.source))
    self.assertEqual((pt.group, pt.index), ('pt_BR', 3))

  def testLimit(self):
    found = sentences.Read(self._Groups(), 5)
    self.assertEqual(
      [x.group for x in found],
      ['de'] * 5 + ['de-en'] * 5 + ['pt_BR'] * 4 + ['pt_BR-en'] * 4,
    )

  def testTranslated(self):
    sentence = sentences.Read(self._Groups())[0]
    row = sentence.Translated('abc', -0.5)
    self.assertEqual((row.translation, row.score), ('abc', -0.5))
    self.assertEqual((row.source, row.index), (sentence.source, 0))

  def testNoText(self):
    with self.assertRaisesRegex(user_error.UserError, 'only dev and test have'):
      sentences.Read(self._Groups('train'))

  def testTextThatIsNotThatOfTheRecords(self):
    with open(f'{self.folder}/test.de.tsv', 'a') as f:
      f.write('one\tmore\n')
    with self.assertRaisesRegex(
      user_error.UserError, r'test\.de\.tsv does not have a line.*13 records'
    ):
      sentences.Read(self._Groups())


if __name__ == '__main__':
  absltest.main()
