"""Tests of the command that scores."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import stat
import subprocess
import sys

from absl.testing import absltest, flagsaver, parameterized

from lingvo_gpipe import child_process, user_error
from tasks.mt import (
  prepared_text,
  test_prepared,
  translation_baselines,
  translation_file,
  zero_shot,
)
from tools.mt import score


class ScoreTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.create_tempdir().full_path)
    self._data = test_prepared.Write(str(self._folder / 'data'))
    data = prepared_text.PreparedText(self._data)
    self._rows = translation_baselines.Untranslated(data, 'test')
    self._zero_shot = zero_shot.Sentences(data, 'test', 'de', 'ru')

  def _File(self, rows, name='model.jsonl'):
    path = str(self._folder / name)
    right = [dataclasses.replace(x, translation=x.reference) for x in rows]
    translation_file.Write(path, right)
    return path

  def _Run(self, rows, **flags):
    stdout = io.StringIO()
    with flagsaver.flagsaver(
      data_dir=self._data, translations=self._File(rows), **flags
    ):
      with contextlib.redirect_stdout(stdout):
        self.assertEqual(score.Main(), 0)
    return stdout.getvalue()

  def testEverything(self):
    output, plot = (str(self._folder / x) for x in ('s.json', 's.png'))
    report = self._Run(
      self._rows, baselines=True, output=output, plot=plot, min_sentences=8
    )
    self.assertRegex(report, r'(?m)^de +40 +high +10 +100\.0 ')
    self.assertRegex(report, r'(?m)^ru +20 +low +6\* +100\.0 +\S+ +0\.0 ')
    self.assertRegex(report, r'copy chrF +difference +memory chrF +difference')
    self.assertNotIn('on target', report)
    self.assertNotIn('missing', report)
    values = json.loads(pathlib.Path(output).read_text())
    self.assertEqual(values['split'], 'test')
    self.assertAlmostEqual(values['means']['en_xx']['all']['chrf'], 100)
    self.assertLess(values['means']['en_xx']['all']['memory'], 90)
    self.assertEqual(pathlib.Path(plot).read_bytes()[:4], b'\x89PNG')

  def testPartOfTheSentences(self):
    report = self._Run([x for x in self._rows if x.group == 'de'][:7])
    self.assertIn('missing: 3 sentences are not translated', report)
    self.assertIn('de 7 of 10', report)
    self.assertIn(
      'missing: 2 directions are not translated at all: pt_BR, ru', report
    )

  def testZeroShotIsIdentified(self):
    report = self._Run(self._zero_shot)
    self.assertRegex(report, r'(?m)^de-ru +20 +low +6\* .* 100% +100%$')

  def testBilingual(self):
    bilingual = translation_baselines.Copy(
      [x for x in self._rows if x.group == 'de']
    )
    path = str(self._folder / 'de.jsonl')
    translation_file.Write(path, bilingual)
    output, plot = (str(self._folder / x) for x in ('s.json', 's.png'))
    self._Run(self._rows, bilingual=[path], output=output, plot=plot)
    values = json.loads(pathlib.Path(output).read_text())['directions']
    self.assertGreater(values['de']['bilingual_difference'], 10)
    self.assertNotIn('bilingual', values['ru'])
    self.assertTrue(os.path.exists(plot))

    with self.assertRaisesRegex(user_error.UserError, 'both .* have group de'):
      self._Run(self._rows, bilingual=[path, path])
    with self.assertRaisesRegex(user_error.UserError, 'has no direction of'):
      self._Run(self._zero_shot, bilingual=[path])

  def testWrongFlags(self):
    path = self._File(self._rows)
    for flags, problem in (
      ({}, '--data_dir is missing'),
      ({'data_dir': self._data}, '--translations is missing'),
      (
        {'data_dir': self._data, 'translations': '/none'},
        'there is no file /none',
      ),
      ({'data_dir': '/none', 'translations': path}, 'no /none/data.json'),
      ({'split': 'dev'}, "no text of split 'dev'"),
      ({'amounts': ['a', '2']}, '--amounts: invalid literal'),
      ({'amounts': ['5']}, '--amounts=5 must be two numbers'),
      ({'plot': 'x.png'}, 'give --baselines or --bilingual'),
      ({'output': '/none/x'}, '--output=/none/x: there is no folder /none'),
    ):
      defaults = {'data_dir': self._data, 'translations': path}
      if not {'data_dir', 'translations'} & set(flags) and flags:
        flags = {**defaults, **flags}
      with flagsaver.flagsaver(**flags):
        with self.assertRaisesRegex(user_error.UserError, problem, msg=flags):
          score.Main()

  def testCommand(self):
    """Without a home to write to, as in containers."""
    home = self._folder / 'home'
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = subprocess.run(
      [
        sys.executable,
        '-m',
        'tools.mt.score',
        f'--data_dir={self._data}',
        f'--translations={self._File(self._rows)}',
        '--baselines',
        f'--plot={self._folder / "s.png"}',
      ],
      env=child_process.Environment(HOME=str(home)),
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual((done.returncode, done.stderr), (0, ''))
    self.assertTrue((self._folder / 's.png').exists())


if __name__ == '__main__':
  absltest.main()
