"""Tests of the command that writes baselines."""

from __future__ import annotations

import contextlib
import io
import os

from absl.testing import absltest, flagsaver

from lingvo_gpipe import user_error
from tasks.mt import test_prepared, translation_file
from tools.mt import baselines


class BaselinesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.create_tempdir().full_path
    self._data = test_prepared.Write(os.path.join(folder, 'data'))
    self._output = os.path.join(folder, 'new/baselines')

  def _Run(self, **flags):
    stdout = io.StringIO()
    with flagsaver.flagsaver(data_dir=self._data, output=self._output, **flags):
      with contextlib.redirect_stdout(stdout):
        self.assertEqual(baselines.Main(), 0)
    return stdout.getvalue()

  def _Read(self, name):
    return translation_file.Read(os.path.join(self._output, name))

  def testFiles(self):
    self.assertIn('wrote 52 translations to', self._Run())
    copies, memory = (self._Read(f'test.{x}.jsonl') for x in ('copy', 'memory'))
    self.assertEqual(
      [(x.group, x.index, x.source) for x in copies],
      [(x.group, x.index, x.source) for x in memory],
    )
    self.assertEqual(
      [x.translation for x in copies], [x.source for x in copies]
    )
    self.assertEqual({x.score for x in copies}, {None})
    self.assertNotIn(None, {x.score for x in memory})

  def testZeroShot(self):
    self._Run(directions='de-ru,ru-pt_BR')
    memory = self._Read('test.memory.jsonl')
    self.assertEqual({x.group for x in memory}, {'de-ru', 'ru-pt_BR'})

  def testMistakes(self):
    for flags, problem in (
      ({'data_dir': ''}, '--data_dir is missing'),
      ({'output': ''}, '--output is missing'),
      ({'data_dir': '/none'}, 'there is no /none/data.json'),
      ({'split': 'dev'}, "no text of split 'dev'"),
      ({'directions': 'de-fr'}, "has no language 'fr'"),
    ):
      values = {'data_dir': self._data, 'output': self._output, **flags}
      with flagsaver.flagsaver(**values):
        with self.assertRaisesRegex(user_error.UserError, problem):
          baselines.Main()
    self.assertFalse(os.path.exists(self._output))


if __name__ == '__main__':
  absltest.main()
