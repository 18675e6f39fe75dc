"""Tests of bazel, with fake programs on PATH."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
from unittest import mock

from absl.testing import absltest

from tools.launcher import bazel, common, debian, fake_programs


class BazelTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._temp = pathlib.Path(self.create_tempdir().full_path)
    self._bin = fake_programs.WriteBinDir(self._temp / 'bin')
    self.enter_context(mock.patch.dict(os.environ, PATH=str(self._bin)))
    self._SetRules(installed=True)

  def _SetRules(self, installed: bool) -> None:
    folder = self._temp if installed else self._temp / 'absent'
    self.enter_context(
      mock.patch.object(bazel, 'DEBIAN_RULES', {'rules_java': folder})
    )

  def _WriteBazel(self, version: str) -> None:
    fake_programs.WriteBazel(self._bin / 'bazel', version)

  def testDebianBuild(self):
    self._WriteBazel('no_version')
    found = bazel.FindOrInstall(self._temp / 'log')
    self.assertTrue(found.is_debian)
    self.assertEqual(found.path, str(self._bin / 'bazel'))

  def testUpstreamBuild(self):
    self._WriteBazel('4.2.3')
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
      found = bazel.FindOrInstall(self._temp / 'log')
    self.assertFalse(found.is_debian)
    self.assertEmpty(found.env)
    self.assertEmpty(stderr.getvalue())

  def testUntestedVersionIsMentioned(self):
    self._WriteBazel('8.1.0')
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
      self.assertFalse(bazel.Find().is_debian)
    self.assertIn('Bazel 8.1.0; the project is tested with', stderr.getvalue())

  def testBazeliskGetsTheTestedVersionAndIsNotStarted(self):
    fake_programs.Write(self._bin / 'bazelisk', 'exit 1')
    found = bazel.Find()
    self.assertEqual(found.path, str(self._bin / 'bazelisk'))
    self.assertEqual(found.env, {'USE_BAZEL_VERSION': '4.2.3'})

  def testBazeliskUnderTheNameOfBazel(self):
    target = fake_programs.Write(self._temp / 'bazelisk-linux', 'exit 1')
    (self._bin / 'bazel').symlink_to(target)
    self.assertEqual(bazel.Find().env, {'USE_BAZEL_VERSION': '4.2.3'})

  def testBrokenBazel(self):
    fake_programs.Write(self._bin / 'bazel', 'echo no java >&2; exit 1')
    with self.assertRaisesRegex(
      common.LauncherError, r'bin/bazel does not work.*\(no java\).*off PATH'
    ):
      bazel.FindOrInstall(self._temp / 'log')

  def testInstallsWhatIsAbsent(self):
    def Install(packages, log, otherwise):
      del log, otherwise
      self.assertIn('bazel-bootstrap', packages)
      self._WriteBazel('no_version')

    with mock.patch.object(debian, 'Install', Install):
      self.assertTrue(bazel.FindOrInstall(self._temp / 'log').is_debian)

  def testInstallsTheRulePackagesOfDebian(self):
    self._WriteBazel('no_version')
    self._SetRules(installed=False)
    with mock.patch.object(debian, 'Install') as install:
      bazel.FindOrInstall(self._temp / 'log')
    self.assertIn('bazel-rules-java', install.call_args.args[0])

  def testInstalledButNotOnPath(self):
    with (
      mock.patch.object(debian, 'Install'),
      self.assertRaisesRegex(common.LauncherError, 'add /usr/bin to PATH'),
    ):
      bazel.FindOrInstall(self._temp / 'log')


if __name__ == '__main__':
  absltest.main()
