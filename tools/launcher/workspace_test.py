"""Tests of workspace."""

from __future__ import annotations

import os
import pathlib
import subprocess
from unittest import mock

from absl.testing import absltest, parameterized

from tools.launcher import bazel, common, environment, workspace

_DEBIAN = bazel.Bazel('/usr/bin/bazel', is_debian=True)
_UPSTREAM = bazel.Bazel('/usr/local/bin/bazel')
_ENV = environment.Environment(pathlib.Path('/venv/bin'), 'f00d')


class WorkspaceTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._temp = pathlib.Path(self.create_tempdir().full_path)

  @parameterized.parameters(
    ('/home/me/lingvo_gpipe-1.0', True),
    ('/home/me/a b', False),
    ('/home/me/naïve', False),
    ('/home/me/$x', False),
  )
  def testIsSafe(self, path, safe):
    self.assertEqual(workspace.IsSafe(pathlib.Path(path)), safe)

  def testCacheDir(self):
    xdg = self._temp / 'xdg'
    cache = workspace.CacheDir({'XDG_CACHE_HOME': str(xdg)})
    self.assertEqual(cache, xdg / 'lingvo_gpipe')
    self.assertTrue(cache.is_dir())
    own = self._temp / 'own'
    self.assertEqual(
      workspace.CacheDir(
        {'XDG_CACHE_HOME': str(xdg), 'LINGVO_GPIPE_CACHE': str(own)}
      ),
      own,
    )

  def testCacheDirWithSpaces(self):
    with self.assertRaisesRegex(common.LauncherError, 'choose another'):
      workspace.CacheDir({'LINGVO_GPIPE_CACHE': str(self._temp / 'a b')})
    # A home folder cannot be chosen, so this must work.
    with mock.patch.object(workspace, '_FALLBACK', self._temp):
      cache = workspace.CacheDir({'XDG_CACHE_HOME': str(self._temp / 'a b')})
    self.assertTrue(workspace.IsSafe(cache))
    self.assertEqual(cache.stat().st_mode & 0o777, 0o700)

  def testCacheDirCannotBeMade(self):
    (self._temp / 'file').touch()
    with self.assertRaisesRegex(
      common.LauncherError, r'cannot be made.*Set LINGVO_GPIPE_CACHE'
    ):
      workspace.CacheDir({'XDG_CACHE_HOME': str(self._temp / 'file')})

  def testPlainPathIsUsedAsItIs(self):
    root = self._temp / 'tree'
    self.assertEqual(workspace.Mirror(root, self._temp / 'state'), root)

  def testMirrorFollowsTheTree(self):
    root = self._temp / 'a b' / 'tree'
    (root / 'package').mkdir(parents=True)
    (root / '.git').mkdir()
    (root / 'WORKSPACE').write_text('one')
    state = self._temp / 'state'
    mirror = workspace.Mirror(root, state)
    self.assertTrue(workspace.IsSafe(mirror))
    self.assertCountEqual(os.listdir(mirror), ['WORKSPACE', 'package'])

    (root / 'WORKSPACE').unlink()
    (root / 'package' / 'x').touch()
    (root / 'new').mkdir()
    self.assertEqual(workspace.Mirror(root, state), mirror)
    self.assertCountEqual(os.listdir(mirror), ['new', 'package'])
    self.assertTrue((mirror / 'package' / 'x').exists())

  def testTreesDoNotShareTheirState(self):
    self.assertNotEqual(
      workspace.StateDir(self._temp / 'a', self._temp),
      workspace.StateDir(self._temp / 'b', self._temp),
    )

  def _Bazelrc(self, used=_DEBIAN, called_elsewhere=False) -> str:
    return workspace.WriteBazelrc(
      self._temp / 'state',
      pathlib.Path('/tree'),
      used,
      _ENV,
      called_elsewhere,
    ).read_text()

  def testPythonComesFirstOnPath(self):
    self.assertIn('build --action_env=PATH=/venv/bin:/usr/', self._Bazelrc())

  def testTestResultsDependOnThePackages(self):
    self.assertIn(
      'test --test_env=LINGVO_GPIPE_ENVIRONMENT=f00d\n', self._Bazelrc()
    )

  def testOverridesForDebiansBuildOnly(self):
    rc = self._Bazelrc()
    for name in ('rules_cc', 'rules_java', 'rules_proto'):
      self.assertIn(f'build --override_repository={name}=/', rc)
    self.assertIn('=/tree/tools/launcher/debian_rules\n', rc)
    self.assertNotIn('override_repository', self._Bazelrc(_UPSTREAM))

  def testRunUnderOnlyIfCalledElsewhere(self):
    self.assertNotIn('run_under', self._Bazelrc())
    rc = self._Bazelrc(called_elsewhere=True)
    (line,) = [x for x in rc.splitlines() if x.startswith('run ')]
    command = line.removeprefix("run '--run_under=").removesuffix("'")
    out = subprocess.run(
      ['sh', '-c', f'{command} sh -c \'echo "$BUILD_WORKING_DIRECTORY"\''],
      env={
        'PATH': os.environ['PATH'],
        workspace.WORKING_DIRECTORY: '/a  b',
        workspace.SOURCE_TREE: '/c',
      },
      capture_output=True,
      text=True,
      check=True,
    ).stdout
    self.assertEqual(out, '/a  b\n')

  def testOtherSettingsGetAnotherFile(self):
    self._Bazelrc()
    self._Bazelrc(called_elsewhere=True)
    self._Bazelrc()
    self.assertLen(os.listdir(self._temp / 'state'), 2)


if __name__ == '__main__':
  absltest.main()
