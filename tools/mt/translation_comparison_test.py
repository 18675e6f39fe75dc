"""Tests of checking and comparing translations."""

from __future__ import annotations

import dataclasses
import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import (
  prepared_text,
  scores,
  test_prepared,
  translation_baselines,
  zero_shot,
)
from tools.mt import translation_comparison


def _Right(rows):
  return [dataclasses.replace(x, translation=x.reference) for x in rows]


class ComparisonTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = os.path.join(self.create_tempdir().full_path, 'data')
    self._data = prepared_text.PreparedText(test_prepared.Write(folder))
    self._comparison = translation_comparison.Comparison(self._data, 'test')
    self._rows = translation_baselines.Untranslated(self._data, 'test')

  def testDirections(self):
    rows = _Right(self._rows)
    sizes = self._comparison.Check('file', rows)
    self.assertEqual(sizes['ru-en'], 6)
    directions = self._comparison.Directions(
      rows, sizes, {'copy': translation_baselines.Copy(rows)}, on_target=True
    )
    self.assertEqual(
      [(x.group, x.training_pairs, x.amount) for x in directions],
      [
        ('de', 40, 'high'),
        ('pt_BR', 30, 'medium'),
        ('ru', 20, 'low'),
        ('de-en', 40, 'high'),
        ('pt_BR-en', 30, 'medium'),
        ('ru-en', 20, 'low'),
      ],
    )
    for x in directions:
      self.assertAlmostEqual(x.score.chrf, 100, places=6)
      self.assertEqual((x.on_target, x.identified), (1, 1))
      copied = x.baselines['copy']
      self.assertAlmostEqual(
        copied.difference, x.score.chrf - copied.score.chrf, places=9
      )
    # Another script.
    self.assertLess(directions[2].baselines['copy'].score.chrf, 1)

  def testCopiesAreOffTarget(self):
    rows = translation_baselines.Copy(self._rows)
    sizes = self._comparison.Check('file', rows)
    for x in self._comparison.Directions(rows, sizes, {}, on_target=True):
      self.assertEqual((x.on_target, x.identified), (0, 1), x.group)

  def testZeroShot(self):
    rows = zero_shot.Sentences(self._data, 'test', 'de', 'ru')
    sizes = self._comparison.Check('file', rows)
    self.assertEqual(sizes, {'de-ru': 6})
    (direction,) = self._comparison.Directions(_Right(rows), sizes, {})
    self.assertEqual(
      (direction.language, direction.kind, direction.training_pairs),
      ('de-ru', 'xx_xx', 20),
    )

  @parameterized.parameters(
    ({'index': 10}, 'sentence 10 of group de is not that of'),
    ({'source': 'x'}, "sentence 3 of group de .* 'test' in .*--data_dir"),
    ({'reference': 'x'}, 'sentence 3 of group de is not'),
    ({'target_language': 'du', 'group': 'du'}, "has no language 'du'"),
  )
  def testOtherData(self, changes, problem):
    rows = [dataclasses.replace(self._rows[3], **changes)]
    with self.assertRaisesRegex(user_error.UserError, f'^file: .*{problem}'):
      self._comparison.Check('file', rows)

  def testUntranslated(self):
    self.assertEmpty(self._comparison.Untranslated(self._rows))
    rows = [x for x in self._rows if x.group != 'ru-en']
    self.assertEqual(self._comparison.Untranslated(rows), ['ru-en'])
    # Nobody meant to translate into English.
    rows = [x for x in self._rows if x.group == 'ru']
    self.assertEqual(self._comparison.Untranslated(rows), ['de', 'pt_BR'])

  def testComparesWhatBothHaveTranslated(self):
    rows = _Right(x for x in self._rows if x.group == 'de')
    rows[0] = dataclasses.replace(rows[0], translation='')
    score = scores.OfDirection(rows)
    self.assertLess(score.chrf, 99)
    others = translation_baselines.Copy(rows)[1:8]
    compared = translation_comparison.Compare(rows, score, others)
    self.assertEqual(compared.score, scores.OfDirection(others))
    self.assertAlmostEqual(
      compared.difference, 100 - compared.score.chrf, places=6
    )
    self.assertIsNone(translation_comparison.Compare(rows[8:], score, others))

  def testWrongSplit(self):
    with self.assertRaisesRegex(user_error.UserError, "no text of split 'dev'"):
      translation_comparison.Comparison(self._data, 'dev')


if __name__ == '__main__':
  absltest.main()
