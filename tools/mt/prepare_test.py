"""Tests of the command, on catalogues of Django."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys

import tensorflow as tf
from absl.testing import flagsaver, parameterized

from lingvo_gpipe import child_process, user_error
from tools.mt import prepare


def _Run(code_or_module, *args):
  environment = child_process.Environment()
  return subprocess.run(
    [sys.executable, *code_or_module, *args],
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )


class PrepareTest(tf.test.TestCase, parameterized.TestCase):
  def testPreparesDjango(self):
    output = os.path.join(self.create_tempdir().full_path, 'data')
    stdout = io.StringIO()
    with flagsaver.flagsaver(
      source='django',
      output=output,
      languages=['de', 'ja', 'fy'],
      vocab_size=1500,
    ):
      with contextlib.redirect_stdout(stdout):
        self.assertEqual(prepare.Main(), 0)
    with open(os.path.join(output, 'data.json'), encoding='utf-8') as f:
      index = json.load(f)
    self.assertEqual(list(index['languages']), ['de', 'ja'])
    report = stdout.getvalue()
    for line in (
      r'language  train  dev  test  train ids',
      r'de +[67]\d\d +\d\d +\d\d +\d\d,\d{3}',
      r'read: [67]\d,\d{3} pairs',
      r'dropped, not in --languages: \d\d,\d{3}',
      r'dropped, duplicate: \d+',
      r'left out, too few pairs for training: fy \(\d+\)',
      r'languages: 2 and English, directions: both',
      r'test: 1\d\d pairs, [\d,]+ source ids, [\d,]+ target ids',
      r'vocabulary: 1,500 ids',
      rf'wrote {output} in \d+ s',
    ):
      self.assertRegex(report, re.compile(f'^{line}$', re.MULTILINE))

  @parameterized.parameters(
    ({'source': 'django'}, '--output is missing'),
    ({'output': '/none/x'}, '--source is missing'),
    (
      {'source': 'django', 'output': '/none/x', 'jaccard': 7.0},
      '--jaccard=7.0 must be',
    ),
  )
  def testMistakes(self, flags, problem):
    with flagsaver.flagsaver(**flags):
      with self.assertRaisesRegex(user_error.UserError, problem):
        prepare.Main()

  def testAVocabularyHasItsSize(self):
    done = _Run(
      ['-m', 'tools.mt.prepare'], '--vocab=x.model', '--vocab_size=100'
    )
    self.assertEqual(
      (done.returncode, done.stderr),
      (
        2,
        'error: --vocab=x.model has its own size; leave --vocab_size away\n',
      ),
    )

  def testHelpNeedsNoTensorFlow(self):
    code = (
      'import runpy, sys; sys.modules["tensorflow"] = None; '
      'sys.argv = ["prepare", "--help"]; '
      'runpy.run_module("tools.mt.prepare", run_name="__main__", '
      'alter_sys=True)'
    )
    done = _Run(['-c', code])
    self.assertEqual(done.returncode, 0, done.stderr)
    for flag in ('--source', '--output', '--jaccard', '--[no]overwrite'):
      self.assertIn(f'{flag}:', done.stdout)


if __name__ == '__main__':
  tf.test.main()
