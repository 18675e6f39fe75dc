"""Runs tools/bazelw as a user does, with a fake Bazel on a bare PATH.

The launcher is copied into trees of the test's own, since what it does depends
on where it lies.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

from absl.testing import absltest

from tools.launcher import fake_programs

_TOOLS = pathlib.Path('tools')


class BazelwTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._temp = pathlib.Path(self.create_tempdir().full_path).resolve()
    self._bin = fake_programs.WriteBinDir(self._temp / 'bin')
    self._tree = self._WriteTree(self._temp / 'tree')
    self._env = {
      'PATH': str(self._bin),
      'XDG_CACHE_HOME': str(self._temp / 'cache'),
      # By default no environment is made.
      'LINGVO_GPIPE_PYTHON': sys.executable,
    }

  def _WriteTree(self, tree: pathlib.Path) -> pathlib.Path:
    shutil.copytree(_TOOLS / 'launcher', tree / 'tools' / 'launcher')
    shutil.copy(_TOOLS / 'bazelw', tree / 'tools')
    (tree / 'tools' / '__init__.py').touch()
    (tree / 'WORKSPACE').touch()
    (tree / 'requirements.txt').write_text('absl-py>=2  # why\n')
    return tree

  def _WriteBazel(self, **kwargs) -> None:
    fake_programs.WriteBazel(self._bin / 'bazel', **kwargs)

  def _Run(self, *args, program=None, cwd=None) -> subprocess.CompletedProcess:
    return subprocess.run(
      [program or self._tree / 'tools' / 'bazelw', *args],
      cwd=cwd or self._tree,
      env=self._env,
      stdin=subprocess.DEVNULL,
      capture_output=True,
      text=True,
      check=False,
    )

  def _AssertError(self, result, regex: str) -> None:
    self.assertEqual(result.returncode, 36, result.stderr)
    self.assertRegex(result.stderr, regex)
    self.assertNotIn('Traceback', result.stderr)
    errors = [x for x in result.stderr.splitlines() if 'error:' in x]
    self.assertLen(errors, 1, result.stderr)

  def testArgumentsAndExitStatusPassThrough(self):
    for status in (0, 1, 3, 4, 36, 130):
      self._WriteBazel(status=status)
      result = self._Run('test', '//...', '--', 'a  b', '')
      self.assertEqual(result.returncode, status, result.stderr)
      self.assertEndsWith(
        result.stdout,
        'arg=test\narg=//...\narg=--\narg=a  b\narg=\n',
      )

  def testBazelSeesTheEnvironmentsPython(self):
    self._WriteBazel()
    expected = pathlib.Path(sys.executable).parent / 'python3'
    self.assertIn(f'python3={expected}\n', self._Run('build').stdout)

  def testOverridesForDebiansBuildOnly(self):
    rules = self._temp / 'rules'
    rules.mkdir()
    path = self._tree / 'tools' / 'launcher' / 'bazel.py'
    path.write_text(path.read_text().replace('/usr/share/bazel', str(rules)))
    for name in ('java', 'proto'):
      (rules / 'rules' / name).mkdir(parents=True)
    self._WriteBazel(version='no_version')
    self.assertIn('--override_repository=rules_cc=', self._Run('build').stdout)
    self._WriteBazel(version='4.2.3')
    self.assertNotIn('override_repository', self._Run('build').stdout)

  def testCalledFromASubfolder(self):
    self._WriteBazel(version='4.2.3')
    folder = self._tree / 'tools'
    self.assertIn(f'cwd={folder}\n', self._Run('test', cwd=folder).stdout)

  def testCalledFromElsewhereAndThroughALink(self):
    self._WriteBazel(version='4.2.3')
    link = self._temp / 'link'
    link.symlink_to(self._tree / 'tools' / 'bazelw')
    result = self._Run('run', '//:x', program=link, cwd=self._temp)
    self.assertIn(f'cwd={self._tree}\n', result.stdout)
    self.assertIn(f'from={self._temp}\n', result.stdout)
    self.assertIn('--run_under=', result.stdout)

  def testPathWithSpaces(self):
    self._WriteBazel(version='4.2.3')
    self._tree = self._WriteTree(self._temp / 'a b' / 'my tree')
    result = self._Run('test', '//...')
    self.assertEqual(result.returncode, 0, result.stderr)
    lines = dict(x.split('=', 1) for x in result.stdout.splitlines())
    self.assertNotIn(' ', lines['cwd'])
    self.assertEqual(lines['from'], str(self._tree))
    link = pathlib.Path(lines['cwd']) / 'WORKSPACE'
    self.assertEqual(link.resolve(), self._tree / 'WORKSPACE')

  def testHelp(self):
    result = self._Run('--help')
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('LINGVO_GPIPE_PYTHON', result.stdout)
    self.assertIn(str(self._temp / 'cache' / 'lingvo_gpipe'), result.stdout)

  def testPythonTooOld(self):
    del self._env['LINGVO_GPIPE_PYTHON']
    fake_programs.Write(
      self._bin / 'python3',
      '[ "$1" = --version ] && echo Python 3.9.2 && exit; exit 1',
    )
    self._AssertError(
      self._Run('build'), r'Python 3\.11, 3\.12 or 3\.13 .*has Python 3\.9\.2\.'
    )

  def testNewerPythonThanTested(self):
    del self._env['LINGVO_GPIPE_PYTHON']
    # Only the check for "at most 3.13" fails; an older one beside it is taken.
    fake_programs.Write(
      self._bin / 'python3',
      '[ "$1" = --version ] && echo Python 3.99.0 && exit; exit 1',
    )
    os.symlink(self._bin / 'real', self._bin / 'python3.12')
    fake_programs.Write(self._bin / 'real', f'exec {sys.executable} "$@"')
    self.assertEqual(self._Run('--help').returncode, 0)

  def testNoPython(self):
    del self._env['LINGVO_GPIPE_PYTHON']
    (self._bin / 'python3').unlink()
    self._AssertError(
      self._Run('build'), 'PATH has no python3.*apt-get install'
    )

  def testGivenPythonDoesNotExist(self):
    self._env['LINGVO_GPIPE_PYTHON'] = '/nonexistent/python'
    self._AssertError(
      self._Run('build'), '/nonexistent/python: no such program'
    )

  def testGivenPythonIsTooOld(self):
    self._env['LINGVO_GPIPE_PYTHON'] = str(
      fake_programs.Write(
        self._temp / 'old',
        '[ "$1" = --version ] && echo Python 3.9.2 && exit; exit 1',
      )
    )
    self._AssertError(self._Run('build'), r'too old.*Python 3\.9\.2.*3\.11')

  def testGivenPythonLacksAPackage(self):
    self._WriteBazel(version='4.2.3')
    (self._tree / 'requirements.txt').write_text('no-such-package>=1  # why\n')
    self._AssertError(self._Run('build'), 'no-such-package is not installed')

  def testNoBazelAndNoAptGet(self):
    self._AssertError(
      self._Run('build'),
      r'no apt-get\. Instead, install Bazel or',
    )

  def testShutdownInstallsNothing(self):
    result = self._Run('shutdown')
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEmpty(result.stderr)

  def testCommandsThatStartNoPythonMakeNoEnvironment(self):
    del self._env['LINGVO_GPIPE_PYTHON']
    self._WriteBazel(version='4.2.3')
    result = self._Run('info')
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEmpty(result.stderr)


if __name__ == '__main__':
  absltest.main()
