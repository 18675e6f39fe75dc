"""Tests of directions that nothing was trained on."""

from __future__ import annotations

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import prepared_text, test_prepared, zero_shot


class ZeroShotTest(parameterized.TestCase):
  def _Data(self):
    folder = os.path.join(self.create_tempdir().full_path, 'data')
    return prepared_text.PreparedText(test_prepared.Write(folder))

  def testSentencesOfBothLanguages(self):
    rows = zero_shot.Sentences(self._Data(), 'test', 'de', 'ru')
    self.assertLen(rows, 6)  # What ru has.
    for i, row in enumerate(rows):
      english = test_prepared.English(104 + i)
      self.assertEqual((row.group, row.index), ('de-ru', i))
      self.assertEqual(row.source, test_prepared.Translation(english, 'de'))
      self.assertEqual(row.reference, test_prepared.Translation(english, 'ru'))
    back = zero_shot.Sentences(self._Data(), 'test', 'ru', 'de')
    self.assertEqual(
      [(x.source, x.reference) for x in back],
      [(x.reference, x.source) for x in rows],
    )

  @parameterized.parameters(
    ('de', 'fr', "direction de-fr: .* has no language 'fr'"),
    ('en', 'de', 'direction en-de is trained on'),
    ('de', 'de', 'the same language twice'),
  )
  def testMistakes(self, source, target, problem):
    with self.assertRaisesRegex(user_error.UserError, problem):
      zero_shot.Sentences(self._Data(), 'test', source, target)

  def testDirections(self):
    self.assertEqual(
      zero_shot.Directions('de-fr, pt_BR-ja'), [('de', 'fr'), ('pt_BR', 'ja')]
    )

  @parameterized.parameters('', 'de', 'de-', '-fr', 'a-b-c', 'de-fr,')
  def testWrongDirections(self, text):
    with self.assertRaisesRegex(user_error.UserError, 'is no direction'):
      zero_shot.Directions(text)


if __name__ == '__main__':
  absltest.main()
