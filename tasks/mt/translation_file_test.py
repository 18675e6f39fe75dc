"""Tests of files of translations."""

from __future__ import annotations

import json
import os
import pathlib

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import translation_file

_LINE = {
  'group': 'de',
  'source_language': 'en',
  'target_language': 'de',
  'index': 0,
  'source': 'one',
  'reference': 'eins',
  'translation': 'ein',
  'score': -0.5,
}


def _Row(**changes):
  return translation_file.Translation(**{**_LINE, **changes})


class TranslationFileTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.create_tempdir().full_path)
    self._path = self._folder / 'test.jsonl'

  def testComesBack(self):
    rows = [
      _Row(),
      # What a reader of text could take for the end of a line.
      _Row(index=2, source='a\u2028b\x85"\\', translation='', score=None),
      _Row(
        group='de-en',
        source_language='de',
        target_language='en',
        translation='日本\n語\r',
        score=0.0,
      ),
    ]
    translation_file.Write(str(self._path), iter(rows))
    self.assertEqual(translation_file.Read(str(self._path)), rows)
    self.assertEqual(os.listdir(self._folder), ['test.jsonl'])
    self.assertEqual(self._path.read_bytes().count(b'\n'), 3)
    self.assertIn('日本', self._path.read_text(encoding='utf-8'))

  def testTheFormat(self):
    translation_file.Write(str(self._path), [_Row()])
    self.assertEqual(json.loads(self._path.read_text()), _LINE)

  def testScoresThatAreNotFinite(self):
    rows = [_Row(score=float('nan')), _Row(index=1, score=float('-inf'))]
    translation_file.Write(str(self._path), rows)
    for row in translation_file.Read(str(self._path)):
      self.assertIsNone(row.score)

  def testAFailedWriteLeavesWhatWasThere(self):
    def _Rows():
      yield _Row()
      raise KeyError('stop')

    self._path.write_text('before')
    with self.assertRaises(KeyError):
      translation_file.Write(str(self._path), _Rows())
    self.assertEqual(self._path.read_text(), 'before')
    self.assertEqual(os.listdir(self._folder), ['test.jsonl'])

  def testRightsAreThoseOfOtherFiles(self):
    translation_file.Write(str(self._path), [_Row()])
    other = self._folder / 'other'
    other.write_text('')
    self.assertEqual(self._path.stat().st_mode, other.stat().st_mode)

  def testOtherKeysAndBlankLinesArePassedOver(self):
    self._path.write_text('\n' + json.dumps({**_LINE, 'more': 1}) + '\n\n')
    self.assertEqual(translation_file.Read(str(self._path)), [_Row()])

  @parameterized.named_parameters(
    ('Json', '{"group": 3', r'line 2 is no JSON \(Expect.*cut off'),
    ('List', '[1]', 'line 2 is no JSON object'),
    ('Text', {'source': 3}, 'line 2: source is 3; it must be a string'),
    ('Index', {'index': -1}, 'line 2: index is -1; it must be 0 or more'),
    ('Bool', {'index': True}, 'line 2: index is True'),
    ('Score', {'score': 'x'}, "line 2: score is 'x'; it must be a number or"),
    ('Twice', {'index': 0}, 'line 2 is sentence 0 of group de, as line 1 is'),
    ('Group', {'group': 'fr'}, "line 2: group is 'fr', .* must be 'de'"),
  )
  def testWrongLines(self, change, problem):
    second = {**_LINE, 'index': 1}
    if isinstance(change, dict):
      change = json.dumps({**second, **change})
    self._path.write_text(f'{json.dumps(_LINE)}\n{change}\n')
    with self.assertRaisesRegex(
      user_error.UserError, f'^{self._path}, {problem}'
    ):
      translation_file.Read(str(self._path))

  @parameterized.parameters(x for x in _LINE if x != 'score')
  def testMissingKeys(self, key):
    line = {k: v for k, v in _LINE.items() if k != key}
    self._path.write_text(json.dumps(line))
    with self.assertRaisesRegex(
      user_error.UserError, f'line 1: {key} is missing'
    ):
      translation_file.Read(str(self._path))

  def testWrongFiles(self):
    with self.assertRaisesRegex(
      user_error.UserError, 'there is no file .*jsonl'
    ):
      translation_file.Read(str(self._path))
    self._path.write_text('\n')
    with self.assertRaisesRegex(user_error.UserError, 'is empty'):
      translation_file.Read(str(self._path))
    self._path.write_bytes(b'\xff\xfe\n')
    with self.assertRaisesRegex(user_error.UserError, "can't decode"):
      translation_file.Read(str(self._path))

  @parameterized.parameters(
    ('en', 'de', 'de'), ('pt_BR', 'en', 'pt_BR-en'), ('de', 'fr', 'de-fr')
  )
  def testGroups(self, source, target, group):
    self.assertEqual(translation_file.GroupOf(source, target), group)


if __name__ == '__main__':
  absltest.main()
