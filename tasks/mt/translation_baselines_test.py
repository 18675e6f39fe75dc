"""Tests of the baselines."""

from __future__ import annotations

import os

from absl.testing import absltest

from tasks.mt import prepared_text, test_prepared, translation_baselines


class TranslationBaselinesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = os.path.join(self.create_tempdir().full_path, 'data')
    self._data = prepared_text.PreparedText(test_prepared.Write(folder))
    self._rows = translation_baselines.Untranslated(self._data, 'test')

  def testUntranslated(self):
    self.assertLen(self._rows, 2 * (10 + 10 + 6))
    groups = {x.group: x for x in self._rows}
    self.assertEqual(
      list(groups), ['de', 'de-en', 'pt_BR', 'pt_BR-en', 'ru', 'ru-en']
    )
    last = groups['ru-en']
    self.assertEqual(
      (last.source_language, last.target_language, last.index), ('ru', 'en', 5)
    )
    self.assertEqual(last.reference, test_prepared.English(109))
    self.assertEqual(
      last.source, test_prepared.Translation(last.reference, 'ru')
    )
    self.assertEqual(last.translation, '')

  def testCopy(self):
    copies = translation_baselines.Translate('copy', self._data, self._rows)
    self.assertLen(copies, len(self._rows))
    for row, copied in zip(self._rows, copies, strict=True):
      self.assertEqual(copied.translation, row.source)
      self.assertEqual(copied.reference, row.reference)

  def testMemoryKnowsWhatIsTrainedOn(self):
    for source, target in (('en', 'de'), ('ru', 'en'), ('de', 'ru')):
      rows = translation_baselines.Rows(
        self._data.TrainingPairs(source, target), source, target
      )
      self.assertLen(rows, 40 if 'ru' not in (source, target) else 20)
      memory = translation_baselines.Translate('memory', self._data, rows)
      for row in memory:
        self.assertEqual(row.translation, row.reference)
        self.assertAlmostEqual(row.score, 1, places=5)

  def testMemoryFindsOnlyWhatIsTrainedOn(self):
    memory = translation_baselines.Memory(self._data, self._rows)
    self.assertLen(memory, len(self._rows))
    for row in memory:
      known = self._data.TrainingPairs(row.source_language, row.target_language)
      self.assertIn(row.translation, [x.target for x in known])
      self.assertNotEqual(row.translation, row.reference)
      self.assertBetween(row.score, 0.1, 0.99)


if __name__ == '__main__':
  absltest.main()
