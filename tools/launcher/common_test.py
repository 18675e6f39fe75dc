"""Tests of common."""

from __future__ import annotations

import contextlib
import io
import pathlib
import subprocess
import sys
import textwrap

from absl.testing import absltest, parameterized

from tools.launcher import common


class CommonTest(parameterized.TestCase):
  def _Run(self, script, **kwargs):
    log = pathlib.Path(self.create_tempdir().full_path, 'sub', 'log')
    return common.RunLogged(['/bin/sh', '-c', script], log, **kwargs)

  def testRunLoggedReturnsStatusAndOutput(self):
    lines = []
    result = self._Run('echo out; echo err >&2; exit 3', on_line=lines.append)
    self.assertEqual(result.status, 3)
    self.assertEqual(result.output, 'out\nerr\n')
    self.assertEqual(lines, ['out', 'err'])
    self.assertIn('out\nerr\n', result.log.read_text())

  def testRunLoggedGivesNoInput(self):
    self.assertEqual(self._Run('cat').status, 0)

  def testRunLoggedEnvironment(self):
    result = self._Run('echo "$A-${HOME:-}"', env={'A': 'x'})
    self.assertEqual(result.output, 'x-\n')

  def testRunLoggedStopsTheCommandIfInterrupted(self):
    marker = pathlib.Path(self.create_tempdir().full_path, 'survived')

    def Interrupt(line):
      raise KeyboardInterrupt(line)

    with self.assertRaises(KeyboardInterrupt):
      self._Run(f'echo x; sleep 20; touch {marker}', on_line=Interrupt)
    self.assertFalse(marker.exists())

  @parameterized.parameters(
    ('OSError: [Errno 28] No space left on device', 'disk is full'),
    ('Temporary failure resolving deb.example.org', 'network'),
    ('Failed to establish a new connection: [Errno 101]', 'network'),
  )
  def testReason(self, output, expected):
    result = common.CommandResult(1, f'x\n{output}\ny\n', pathlib.Path('log'))
    self.assertIn(expected, result.Reason())

  def testNoReason(self):
    result = common.CommandResult(1, 'syntax error\n', pathlib.Path('log'))
    self.assertIsNone(result.Reason())
    self.assertEqual(result.Tail(), '  syntax error')

  def testLockIsHeldAgainstAnotherProcess(self):
    path = pathlib.Path(self.create_tempdir().full_path, 'lock')
    other = textwrap.dedent(
      """
      import pathlib, sys
      from tools.launcher import common
      with common.Lock(pathlib.Path(sys.argv[1]), 'at work'):
        print('got it', flush=True)
      """
    )
    with common.Lock(path, 'at work'):
      process = subprocess.Popen(
        [sys.executable, '-c', other, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={'PYTHONPATH': ':'.join(sys.path)},
      )
      self.addCleanup(process.kill)
      # It says that it waits, and does not go on.
      self.assertIn('another launcher is at work', process.stderr.readline())
      self.assertIsNone(process.poll())
    out, _ = process.communicate(timeout=60)
    self.assertEqual(out, 'got it\n')

  def testWriteAtomically(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    common.WriteAtomically(folder / 'x', 'one')
    common.WriteAtomically(folder / 'x', 'two')
    self.assertEqual((folder / 'x').read_text(), 'two')
    self.assertLen(list(folder.iterdir()), 1)

  def testSayGoesToStderr(self):
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
      common.Say('hello')
    self.assertEqual(stderr.getvalue(), 'bazelw: hello\n')

  def testPlural(self):
    self.assertEqual(common.Plural(1, 'package'), '1 package')
    self.assertEqual(common.Plural(2, 'package'), '2 packages')


if __name__ == '__main__':
  absltest.main()
