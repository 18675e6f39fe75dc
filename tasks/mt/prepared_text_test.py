"""Tests of reading the text of prepared data."""

from __future__ import annotations

import json
import os
import pathlib

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import prepared_text, test_prepared

_TextPair = prepared_text.TextPair


def _Pairs(numbers, source, target):
  def _Text(number, language):
    text = test_prepared.English(number)
    if language == 'en':
      return text
    return test_prepared.Translation(text, language)

  return [_TextPair(_Text(i, source), _Text(i, target)) for i in numbers]


class PreparedTextTest(parameterized.TestCase):
  def _Write(self, **kwargs):
    self._folder = os.path.join(self.create_tempdir().full_path, 'data')
    return test_prepared.Write(self._folder, **kwargs)

  @parameterized.parameters(
    {'directions': 'both'},
    {'directions': 'en-xx'},
    {'directions': 'xx-en'},
  )
  def testText(self, directions):
    data = prepared_text.PreparedText(self._Write(directions=directions))
    self.assertEqual(data.languages, {'de': 40, 'pt_BR': 30, 'ru': 20})
    for source, target in (('en', 'ru'), ('ru', 'en')):
      # Training pairs were shuffled.
      self.assertCountEqual(
        data.TrainingPairs(source, target), _Pairs(range(20), source, target)
      )
      self.assertEqual(
        data.Sentences('test', source, target),
        _Pairs(range(104, 110), source, target),
      )

  def testPairsOfTwoOtherLanguages(self):
    data = prepared_text.PreparedText(self._Write())
    self.assertCountEqual(
      data.TrainingPairs('de', 'ru'), _Pairs(range(20), 'de', 'ru')
    )

  def testJoin(self):
    first = [('a', 'A'), ('b', 'B'), ('a', 'other'), ('c', 'C')]
    second = [('c', '3'), ('a', '1'), ('a', 'other'), ('d', '4')]
    self.assertEqual(
      prepared_text.Join(
        [_TextPair(*x) for x in first], [_TextPair(*x) for x in second]
      ),
      [('A', '1'), ('C', '3')],
    )

  def testMistakes(self):
    data = prepared_text.PreparedText(self._Write())
    with self.assertRaisesRegex(
      user_error.UserError, "^f: .* has no language 'ptBR'; did .* 'pt_BR'"
    ):
      data.CheckLanguage('ptBR', 'f')
    data.CheckLanguage('en', 'f')
    with self.assertRaisesRegex(
      user_error.UserError, "no text of split 'dev'; it has test"
    ):
      data.Sentences('dev', 'en', 'de')
    self.assertEmpty(data.Sentences('test', 'en', 'fr'))

  def testDamagedFolders(self):
    folder = pathlib.Path(self._Write())
    with self.assertRaisesRegex(
      user_error.UserError, 'there is no .*data.json'
    ):
      prepared_text.PreparedText(str(folder / 'none'))
    (folder / 'test.de.tsv').write_text('one\ttwo\nthree\n')
    (folder / 'train-ru-00000-of-00001.tfrecord').write_bytes(b'x' * 99)
    (folder / 'vocab.model').rename(folder / 'kept')
    data = prepared_text.PreparedText(str(folder))
    with self.assertRaisesRegex(user_error.UserError, 'line 2 has 1 columns'):
      data.Sentences('test', 'en', 'de')
    with self.assertRaisesRegex(user_error.UserError, 'vocab.model'):
      data.TrainingPairs('en', 'ru')
    (folder / 'kept').rename(folder / 'vocab.model')
    with self.assertRaisesRegex(user_error.UserError, f'^{folder}: .*corrupt'):
      data.TrainingPairs('en', 'ru')
    index = json.loads((folder / 'data.json').read_text())
    (folder / 'data.json').write_text(json.dumps({**index, 'vocab_sha256': ''}))
    with self.assertRaisesRegex(user_error.UserError, 'is not the vocabulary'):
      prepared_text.PreparedText(str(folder)).TrainingPairs('en', 'de')
    (folder / 'data.json').write_text('{"format": 9}')
    with self.assertRaisesRegex(user_error.UserError, 'is of format 9, not 1'):
      prepared_text.PreparedText(str(folder))


if __name__ == '__main__':
  absltest.main()
