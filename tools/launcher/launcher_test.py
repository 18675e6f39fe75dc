"""Tests of launcher: what it decides; tools/bazelw_test.py runs it whole."""

from __future__ import annotations

import contextlib
import errno
import io
import pathlib
from unittest import mock

from absl.testing import absltest, parameterized

from tools.launcher import common, launcher


class LauncherTest(parameterized.TestCase):
  @parameterized.parameters(
    (['test', '//...'], 'test'),
    (['--batch', 'run', '//:trainer', '--', 'test'], 'run'),
    (['help', 'test'], 'help'),
    (['--version'], None),
    ([], None),
  )
  def testCommand(self, argv, command):
    self.assertEqual(launcher.Command(argv), command)

  @parameterized.parameters(
    (common.LauncherError('do this'), 36, 'error: do this'),
    (OSError(errno.ENOSPC, 'No space left'), 36, 'free some space'),
    (KeyboardInterrupt(), 130, 'interrupted'),
  )
  def testFailures(self, error, status, message):
    with (
      mock.patch.object(launcher, '_Launch', side_effect=error),
      contextlib.redirect_stderr(io.StringIO()) as stderr,
    ):
      self.assertEqual(launcher.Main(pathlib.Path('/x'), ['test']), status)
    self.assertIn(message, stderr.getvalue())
    self.assertNotIn('Traceback', stderr.getvalue())


if __name__ == '__main__':
  absltest.main()
