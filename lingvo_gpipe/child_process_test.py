"""Tests of child_process."""

import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import child_process


class ChildProcessTest(absltest.TestCase):
  def testImportsWhatThisOneCan(self):
    folder = self.create_tempdir()
    folder.create_file('only_here.py', 'VALUE = "found"')
    with mock.patch.object(sys, 'path', ['', folder.full_path, *sys.path]):
      environment = child_process.Environment(LINGVO_GPIPE_TEST='more')
    code = 'import os, only_here; print(only_here.VALUE, os.environ[%r])'
    done = subprocess.run(
      [sys.executable, '-P', '-c', code % 'LINGVO_GPIPE_TEST'],
      # From another folder.
      cwd='/',
      env=environment,
      capture_output=True,
      text=True,
      check=True,
    )
    self.assertEqual(done.stdout, 'found more\n')

  def testLeavesThisEnvironmentAlone(self):
    before = dict(os.environ)
    environment = child_process.Environment(HOME='/nowhere')
    self.assertEqual(environment['HOME'], '/nowhere')
    self.assertEqual(environment['PYTHONPATH'], child_process.PythonPath())
    self.assertEqual(dict(os.environ), before)


if __name__ == '__main__':
  absltest.main()
