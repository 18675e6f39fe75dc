"""Tests of debian, with a fake apt-get and a fake sudo on PATH."""

from __future__ import annotations

import os
import pathlib
from unittest import mock

from absl.testing import absltest

from tools.launcher import common, debian, fake_programs


class DebianTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    temp = pathlib.Path(self.create_tempdir().full_path)
    self._bin = fake_programs.WriteBinDir(temp / 'bin')
    self._calls = temp / 'calls'
    self._log = temp / 'apt.log'
    self.enter_context(mock.patch.dict(os.environ, PATH=str(self._bin)))

  def _BecomeUser(self, uid: int) -> None:
    self.enter_context(mock.patch.object(os, 'geteuid', lambda: uid))

  def _WriteAptGet(self, script: str = '') -> None:
    fake_programs.Write(
      self._bin / 'apt-get', f'echo "apt-get $*" >> {self._calls}\n{script}'
    )

  def _Install(self) -> None:
    debian.Install(['one', 'two'], self._log, 'do something else')

  def testRoot(self):
    self._BecomeUser(0)
    self._WriteAptGet()
    self._Install()
    calls = self._calls.read_text().splitlines()
    self.assertLen(calls, 1)
    self.assertIn('install -y --no-install-recommends one two', calls[0])

  def testSudo(self):
    self._BecomeUser(1000)
    self._WriteAptGet()
    fake_programs.Write(
      self._bin / 'sudo',
      f"""
      echo "sudo $*" >> {self._calls}
      shift
      [ "$1" = true ] || exec "$@"
      """,
    )
    self._Install()
    calls = self._calls.read_text()
    self.assertIn('sudo -n env DEBIAN_FRONTEND=noninteractive apt-get', calls)
    self.assertIn('\napt-get ', calls)

  def testNoRootAndNoSudo(self):
    self._BecomeUser(1000)
    self._WriteAptGet()
    with self.assertRaisesRegex(
      common.LauncherError,
      r'needs root.*apt-get update && apt-get install one two\nOr do something',
    ):
      self._Install()
    self.assertFalse(self._calls.exists())

  def testSudoWantsAPassword(self):
    self._BecomeUser(1000)
    self._WriteAptGet()
    fake_programs.Write(self._bin / 'sudo', 'exit 1')
    with self.assertRaisesRegex(common.LauncherError, 'asks for a password'):
      self._Install()
    self.assertFalse(self._calls.exists())

  def testNoAptGet(self):
    self._BecomeUser(0)
    with self.assertRaisesRegex(
      common.LauncherError,
      r'one two.*no apt-get\. Instead, do something',
    ):
      self._Install()

  def testUpdatesThePackageListsOnce(self):
    self._BecomeUser(0)
    lists = self._log.with_name('lists')
    self._WriteAptGet(
      f"""
      case "$*" in
        *update*) : > {lists} ;;
        *) [ -e {lists} ] || {{ echo 'E: Unable to locate package'; exit 100; }}
      esac
      """
    )
    self._Install()
    calls = self._calls.read_text().splitlines()
    self.assertEqual(
      [x.split()[3] for x in calls], ['install', 'update', 'install']
    )

  def testNoNetwork(self):
    self._BecomeUser(0)
    self._WriteAptGet(
      "echo 'Temporary failure resolving deb.example.org'; exit 100"
    )
    with self.assertRaisesRegex(
      common.LauncherError, 'network cannot be reached'
    ):
      self._Install()
    self.assertIn('Temporary failure', self._log.read_text())

  def testOtherFailureNamesTheLog(self):
    self._BecomeUser(0)
    self._WriteAptGet("echo 'E: broken packages'; exit 100")
    with self.assertRaises(common.LauncherError) as raised:
      self._Install()
    self.assertIn(str(self._log), str(raised.exception))
    self.assertIn('E: broken packages', str(raised.exception))


if __name__ == '__main__':
  absltest.main()
