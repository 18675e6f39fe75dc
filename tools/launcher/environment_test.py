"""Tests of environment; a script plays the Python that has venv and pip."""

from __future__ import annotations

import collections
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from tools.launcher import common, debian, environment, fake_programs

# Answers `-m venv FOLDER` and, within FOLDER, `-m pip ... install`. Each call
# is a line in $CALLS. $PIP is a shell command that pip runs, such as a failure.
_PYTHON = """
echo "$*" >> "$CALLS"
case "$*" in
  '-m venv '*)
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
    cp "$0" "$3/bin/python3"
    ;;
  '-m pip '*)
    echo 'Collecting tensorflow>=2.21'
    eval "$PIP"
    ;;
esac
"""


class PrepareTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    temp = pathlib.Path(self.create_tempdir().full_path)
    self._cache = temp / 'cache'
    self._venv = environment.VenvPath(self._cache)
    self._calls = temp / 'calls'
    self._requirements = temp / 'requirements.txt'
    self._requirements.write_text('tensorflow>=2.21  # why\n')
    python = fake_programs.Write(temp / 'python3', _PYTHON)
    self.enter_context(mock.patch.object(sys, 'executable', str(python)))
    self.enter_context(
      mock.patch.dict(os.environ, CALLS=str(self._calls), PIP='')
    )

  def _Prepare(self) -> environment.Environment:
    self._calls.write_text('')
    return environment.Prepare(self._requirements, self._cache)

  def _Made(self) -> collections.Counter:
    """How often `venv` and `pip` were called by the last Prepare."""
    calls = self._calls.read_text()
    return collections.Counter(
      {'venv': calls.count('-m venv'), 'pip': calls.count('-m pip')}
    )

  def _AssertError(self, regex: str) -> None:
    with self.assertRaisesRegex(common.LauncherError, regex):
      self._Prepare()

  def testMadeOnceAndReused(self):
    env = self._Prepare()
    self.assertEqual(env.bin_dir, self._venv / 'bin')
    self.assertNotEmpty(env.fingerprint)
    self.assertEqual(self._Made(), {'venv': 1, 'pip': 1})
    self.assertEqual(self._Prepare(), env)
    self.assertEqual(self._Made(), {'venv': 0, 'pip': 0})
    self.assertEqual(environment.Peek(self._cache), env)

  def testChangedRequirementsAreInstalledInPlace(self):
    self._Prepare()
    self._requirements.write_text('tensorflow>=2.22\n')
    self._Prepare()
    self.assertEqual(self._Made(), {'venv': 0, 'pip': 1})

  def testFingerprintFollowsThePackages(self):
    first = self._Prepare()
    package = self._venv / 'lib/python3.11/site-packages/x-1.0.dist-info'
    package.mkdir()
    (package / 'METADATA').write_text('Name: x\nVersion: 1.0\n')
    self._requirements.write_text('x\n')
    self.assertNotEqual(self._Prepare().fingerprint, first.fingerprint)

  def testFailedInstallationIsStartedAfresh(self):
    os.environ['PIP'] = 'exit 1'
    self._AssertError('pip could not install')
    self.assertEmpty(environment.Peek(self._cache).fingerprint)
    left = self._venv / 'half-unpacked'
    left.touch()
    os.environ['PIP'] = ''
    self._Prepare()
    self.assertEqual(self._Made(), {'venv': 1, 'pip': 1})
    self.assertFalse(left.exists())

  def testKilledInstallationIsStartedAfresh(self):
    # The launcher dies with no chance to clean up, and pip goes on for a while.
    os.environ['PIP'] = 'kill -9 $PPID; sleep 1; echo late >> "$CALLS"'
    self._calls.write_text('')
    code = (
      'import pathlib, sys; from tools.launcher import environment; '
      'sys.executable = sys.argv[1]; '
      'environment.Prepare(*map(pathlib.Path, sys.argv[2:]))'
    )
    real_python = shutil.which('python3')
    status = subprocess.run(
      [
        real_python,
        '-c',
        code,
        sys.executable,
        self._requirements,
        self._cache,
      ],
      env={**os.environ, 'PYTHONPATH': ':'.join(sys.path)},
      check=False,
    ).returncode
    self.assertEqual(status, -9)
    os.environ['PIP'] = ''
    self._Prepare()
    self.assertEqual(self._Made(), {'venv': 1, 'pip': 1})
    # Nothing was touched while the old pip was still at work.
    self.assertStartsWith(self._calls.read_text(), 'late\n')

  def testInterruptedUpdateIsStartedAfresh(self):
    self._Prepare()
    self._requirements.write_text('tensorflow>=2.22\n')
    os.environ['PIP'] = 'exit 1'
    self._AssertError('pip could not install')
    # Even if requirements.txt goes back to what was installed before.
    self._requirements.write_text('tensorflow>=2.21  # why\n')
    os.environ['PIP'] = ''
    self._Prepare()
    self.assertEqual(self._Made(), {'venv': 1, 'pip': 1})

  def testUninstalledBasePython(self):
    self._Prepare()
    python = self._venv / 'bin' / 'python3'
    python.unlink()
    python.symlink_to('/nonexistent/python3')
    self._Prepare()
    self.assertEqual(self._Made(), {'venv': 1, 'pip': 1})

  def testNoNetwork(self):
    os.environ['PIP'] = (
      'echo "Failed to establish a new connection: [Errno 101]"; '
      'echo "ERROR: No matching distribution found for tensorflow"; exit 1'
    )
    self._AssertError('network cannot be reached')

  def testDiskFull(self):
    os.environ['PIP'] = 'echo "[Errno 28] No space left on device"; exit 1'
    self._AssertError('disk is full')

  def testNothingForThisPython(self):
    os.environ['PIP'] = (
      'echo "ERROR: No matching distribution found for tensorflow>=2.21"; '
      'exit 1'
    )
    self._AssertError('no release of tensorflow>=2.21 is offered for Python 3')

  def testTooLittleSpace(self):
    usage = collections.namedtuple('usage', 'free')(2**30)
    with mock.patch.object(shutil, 'disk_usage', lambda path: usage):
      self._AssertError('has 1.0 GiB of free space.*LINGVO_GPIPE_CACHE')

  def testMissingVenvModuleIsInstalled(self):
    with (
      mock.patch.object(environment, '_HasEnsurepip', lambda: False),
      mock.patch.object(debian, 'Install') as install,
    ):
      self._Prepare()
    self.assertRegex(install.call_args.args[0][0], r'^python3\.\d+-venv$')

  def testCallersPythonVariablesDoNotReachPip(self):
    os.environ['PIP'] = 'echo "<$PYTHONPATH$PIP_TARGET>"; exit 1'
    with mock.patch.dict(os.environ, PYTHONPATH='/a', PIP_TARGET='/b'):
      self._AssertError('<>')


class GivenTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._temp = pathlib.Path(self.create_tempdir().full_path)
    self._requirements = self._temp / 'requirements.txt'

  def _Given(self, text: str) -> environment.Environment:
    self._requirements.write_text(text)
    return environment.Given(self._requirements, self._temp / 'shims')

  def testSatisfied(self):
    env = self._Given('absl-py>=2  # why\n# no line\n\nnumpy\n')
    self.assertNotEmpty(env.fingerprint)
    self._AssertStarts(env)

  def _AssertStarts(self, env: environment.Environment) -> None:
    """Its python3 must be this interpreter, with its packages."""
    found = subprocess.run(
      [env.bin_dir / 'python3', '-c', 'import absl, sys; print(sys.prefix)'],
      capture_output=True,
      text=True,
      check=True,
    ).stdout.strip()
    self.assertEqual(found, sys.prefix)

  def testNoPython3BesideTheInterpreter(self):
    folder = self._temp / 'a b'
    program = folder / 'python3.99'
    fake_programs.Write(program, f'exec {sys.executable} "$@"')
    with mock.patch.object(sys, 'executable', str(program)):
      env = self._Given('absl-py\n')
    self.assertEqual(env.bin_dir, self._temp / 'shims')
    self._AssertStarts(env)

  def testMissingPackages(self):
    with self.assertRaisesRegex(
      common.LauncherError,
      r'lacks 2 packages: no-such-one is not installed; nor-this is not',
    ):
      self._Given('no-such-one>=1\nabsl-py\nnor-this\n')

  def testOldPackage(self):
    version = importlib.metadata.version('absl-py')
    with self.assertRaisesRegex(
      common.LauncherError, rf'1 package: absl-py {version} is older than 99\.1'
    ):
      self._Given('absl-py>=99.1,<100\n')

  def testTensorFlowUnderAnotherName(self):
    def Version(name):
      if name != 'tensorflow-cpu':
        raise importlib.metadata.PackageNotFoundError(name)
      return '2.20.1'

    with mock.patch.object(importlib.metadata, 'version', Version):
      self._Given('tensorflow>=2.20\n')
      with self.assertRaisesRegex(common.LauncherError, 'tensorflow-cpu 2.20'):
        self._Given('tensorflow>=2.21\n')


class ParseRequirementsTest(parameterized.TestCase):
  @parameterized.parameters(
    ('tensorflow>=2.21,<3  # reason', 'tensorflow', '2.21'),
    ('scikit-learn', 'scikit-learn', ''),
    ('numpy<3, >= 2.0', 'numpy', '2.0'),
  )
  def testLine(self, line, name, minimum):
    self.assertEqual(
      environment.ParseRequirements(line),
      [environment.Requirement(name, minimum)],
    )

  def testOurs(self):
    text = pathlib.Path('requirements.txt').read_text()
    requirements = environment.ParseRequirements(text)
    names = [x.name for x in requirements]
    self.assertIn('tensorflow', names)
    self.assertIn('importlib_resources', names)
    for requirement in requirements:
      self.assertNotEmpty(requirement.minimum, requirement.name)

  def testOursHaveReasons(self):
    for line in pathlib.Path('requirements.txt').read_text().splitlines():
      if line and not line.startswith('#'):
        self.assertIn('  # ', line)
        self.assertNotIn('==', line)


if __name__ == '__main__':
  absltest.main()
