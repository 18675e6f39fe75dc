"""Tests of command."""

import subprocess
import sys

from absl.testing import absltest

from lingvo_gpipe import child_process

_TOOL = """
from absl import flags
from lingvo_gpipe import user_error
from tools.benchmarks import command

_NUMBER = flags.DEFINE_integer('number', 1, 'A number.', lower_bound=1)

def Main():
  print('ran')
  if _NUMBER.value == 7:
    raise user_error.UserError('7 is not to be had')
  return _NUMBER.value

command.Run(Main)
"""


class CommandTest(absltest.TestCase):
  def _Run(self, *args):
    tool = self.create_tempfile('tool.py', _TOOL).full_path
    done = subprocess.run(
      [sys.executable, '-P', tool, *args],
      capture_output=True,
      text=True,
      env=child_process.Environment(),
      check=False,
    )
    return done.returncode, done.stdout, done.stderr

  def testStatus(self):
    self.assertEqual(self._Run('--number=3'), (3, 'ran\n', ''))

  def testErrorsAreOneLine(self):
    self.assertEqual(
      self._Run('--number=7'), (2, 'ran\n', 'error: 7 is not to be had\n')
    )
    status, out, error = self._Run('--number=0')
    self.assertEqual((status, out), (2, ''))
    self.assertRegex(error, '^error: flag --number=0: .*--help lists the flags')
    status, out, error = self._Run('word')
    self.assertEqual((status, out), (2, ''))
    self.assertStartsWith(error, "error: unexpected argument 'word'")

  def testHelp(self):
    status, out, unused_error = self._Run('--help')
    self.assertEqual(status, 0)
    self.assertIn('A number.', out)


if __name__ == '__main__':
  absltest.main()
