"""The Python environment of the project: the launcher's own, or one given."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from tools.launcher import common, debian

# What the packages take when installed, with room for pip's unpacking.
_NEEDED_BYTES = 5 * 2**30

_STAMP = 'lingvo_gpipe.stamp'

# Variables that would make pip install somewhere else, or see packages that the
# environment does not have.
_MISLEADING = (
  'PIP_PREFIX',
  'PIP_TARGET',
  'PIP_USER',
  'PYTHONHOME',
  'PYTHONPATH',
)

# Distributions whose import name is not theirs with `-` as `_`.
_IMPORT_NAMES = {'absl-py': 'absl', 'scikit-learn': 'sklearn'}

# Other distributions of the same package.
_ALTERNATIVES = {'tensorflow': ('tensorflow-cpu', 'tf-nightly')}


@dataclasses.dataclass(frozen=True)
class Environment:
  """An environment that can run the project.

  Attributes:
    bin_dir: folder with its `python3`, to be first on PATH.
    fingerprint: changes when the installed packages do, so that Bazel does not
      reuse test results from before. Empty if the environment is not made yet.
  """

  bin_dir: pathlib.Path
  fingerprint: str


@dataclasses.dataclass(frozen=True)
class Requirement:
  """A line of requirements.txt."""

  name: str
  minimum: str  # '' if the line gives none


def VenvPath(cache: pathlib.Path) -> pathlib.Path:
  """The launcher's environment for the Python that runs it."""
  return cache / f'venv-{sys.version_info[0]}.{sys.version_info[1]}'


def Peek(cache: pathlib.Path) -> Environment:
  """The launcher's environment as it is, for commands that start no Python."""
  venv = VenvPath(cache)
  stamp = _ReadStamp(venv)
  return Environment(venv / 'bin', stamp[1] if stamp else '')


def Prepare(requirements: pathlib.Path, cache: pathlib.Path) -> Environment:
  """Makes the launcher's environment, or reuses it.

  It is installed anew only if requirements.txt has changed since (then in
  place), or if it is absent, unfinished or broken (then from nothing).

  Args:
    requirements: the requirements.txt to install.
    cache: folder for the environment, its lock and pip's log.

  Raises:
    LauncherError: it cannot be installed; the message says why.
  """
  venv = VenvPath(cache)
  digest = _Digest(requirements.read_bytes())
  if not _IsReady(venv, digest):
    with common.Lock(
      venv.with_suffix(f'{venv.suffix}.lock'), 'installing the Python packages'
    ):
      if not _IsReady(venv, digest):  # Or the other launcher has made it.
        _Install(venv, requirements, digest)
  return Peek(cache)


def Given(requirements: pathlib.Path, shim_dir: pathlib.Path) -> Environment:
  """Takes the interpreter that runs the launcher (LINGVO_GPIPE_PYTHON).

  Args:
    requirements: the requirements.txt it must satisfy.
    shim_dir: folder for a `python3` that starts this interpreter, in case the
      one beside it is missing or another.

  Raises:
    LauncherError: a package is missing or too old.
  """
  problems = [
    problem
    for requirement in ParseRequirements(requirements.read_text())
    if (problem := _Problem(requirement))
  ]
  if problems:
    raise common.LauncherError(
      f'LINGVO_GPIPE_PYTHON: {sys.executable} lacks '
      f'{common.Plural(len(problems), "package")}: {"; ".join(problems)}. '
      f'Install what is missing (see {requirements}), or unset the variable '
      'to let the launcher make an environment.'
    )
  fingerprint = _Fingerprint(sys.path)
  program = pathlib.Path(sys.executable)
  beside = program.with_name('python3')
  if beside.exists() and beside.samefile(program) and ' ' not in str(beside):
    return Environment(program.parent, fingerprint)
  shim_dir.mkdir(parents=True, exist_ok=True)
  for name in ('python', 'python3'):
    shim = shim_dir / name
    common.WriteAtomically(
      shim, f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n'
    )
    shim.chmod(0o755)
  return Environment(shim_dir, fingerprint)


def ParseRequirements(text: str) -> list[Requirement]:
  """Reads names and lower bounds from the text of a requirements.txt."""
  requirements = []
  for line in text.splitlines():
    line = line.partition('#')[0].strip()
    if match := re.match(r'[\w.-]+', line):
      minimum = re.search(r'>=\s*([\d.]+)', line)
      requirements.append(
        Requirement(match.group(), minimum.group(1) if minimum else '')
      )
  return requirements


def _Problem(requirement: Requirement) -> str | None:
  """Why this interpreter does not satisfy the requirement, if so."""
  name = requirement.name
  module = _IMPORT_NAMES.get(name, name.replace('-', '_'))
  if importlib.util.find_spec(module) is None:
    return f'{name} is not installed'
  for distribution in (name, *_ALTERNATIVES.get(name, ())):
    try:
      version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
      continue
    if _Numbers(version) >= _Numbers(requirement.minimum):
      return None
    return f'{distribution} {version} is older than {requirement.minimum}'
  return None  # Importable, but of no known distribution: the user's business.


def _Numbers(version: str) -> tuple[int, ...]:
  """'2.21.0rc1' -> (2, 21, 0): enough to compare with a lower bound."""
  leading = re.match(r'[\d.]*', version)
  assert leading is not None
  return tuple(int(x) for x in leading.group().split('.') if x)


def _Digest(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()[:16]


def _Fingerprint(path: list[str]) -> str:
  """A digest of the names and versions of all packages on a sys.path."""
  installed = {
    f'{x.metadata["Name"]}=={x.version}'
    for x in importlib.metadata.distributions(path=path)
  }
  return _Digest('\n'.join(sorted(installed)).encode())


def _ReadStamp(venv: pathlib.Path) -> tuple[str, str] | None:
  """Digest of requirements.txt and fingerprint of a finished installation."""
  try:
    digest, fingerprint = (venv / _STAMP).read_text().split()
  except (FileNotFoundError, ValueError):
    return None
  return digest, fingerprint


def _IsReady(venv: pathlib.Path, digest: str) -> bool:
  stamp = _ReadStamp(venv)
  # The link to the base interpreter dangles if that was uninstalled.
  usable = os.access(venv / 'bin' / 'python3', os.X_OK)
  return usable and stamp is not None and stamp[0] == digest


def _Install(
  venv: pathlib.Path, requirements: pathlib.Path, digest: str
) -> None:
  log = venv.with_suffix(f'{venv.suffix}.log')
  log.unlink(missing_ok=True)
  env = {k: v for k, v in os.environ.items() if k not in _MISLEADING}
  python = str(venv / 'bin' / 'python3')
  if _ReadStamp(venv) is None or not os.access(python, os.X_OK):
    _CreateVenv(venv, log, env)
  else:
    common.Say('requirements.txt has changed; updating the environment')
  # Without its stamp an interrupted installation counts as none.
  stamp = venv / _STAMP
  stamp.unlink(missing_ok=True)
  common.Say(
    f'installing the packages of {requirements.name} into {venv} (3 GB; takes '
    f'minutes); log: {log}'
  )
  pip = [python, '-m', 'pip', '--disable-pip-version-check', 'install']
  result = common.RunLogged(
    [*pip, '-r', str(requirements)], log, env, _ReportProgress
  )
  if result.status != 0:
    raise common.LauncherError(
      f'pip could not install {requirements}: '
      f'{result.Reason() or _PipReason(result.output) or f"see {log}"}.\n'
      f'{result.Tail()}'
    )
  site_packages = sorted((venv / 'lib').glob('python3*/site-packages'))
  fingerprint = _Fingerprint([str(x) for x in site_packages])
  common.WriteAtomically(stamp, f'{digest} {fingerprint}\n')
  common.Say('the environment is ready')


def _CreateVenv(
  venv: pathlib.Path, log: pathlib.Path, env: dict[str, str]
) -> None:
  shutil.rmtree(venv, ignore_errors=True)  # What an interruption left.
  free = shutil.disk_usage(venv.parent).free
  if free < _NEEDED_BYTES:
    raise common.LauncherError(
      f'{venv.parent} has {free / 2**30:.1f} GiB of free space; installing '
      f'the Python packages takes {_NEEDED_BYTES / 2**30:.0f}. Free some '
      'space, or set LINGVO_GPIPE_CACHE to a folder on another disk.'
    )
  if not _HasEnsurepip():
    debian.Install(
      [f'python{sys.version_info[0]}.{sys.version_info[1]}-venv'],
      venv.parent / 'apt.log',
      f'give {sys.executable} the modules venv and ensurepip, or set '
      'LINGVO_GPIPE_PYTHON to the python of an environment that has the '
      'packages of requirements.txt',
    )
  common.Say(f'making a Python environment with {sys.executable}')
  result = common.RunLogged([sys.executable, '-m', 'venv', str(venv)], log, env)
  if result.status != 0:
    raise common.LauncherError(
      f'{sys.executable} -m venv {venv} failed: '
      f'{result.Reason() or f"see {log}"}.\n{result.Tail()}'
    )


def _HasEnsurepip() -> bool:
  """False on Debian until the package python3-venv is there."""
  # A process of its own: within a virtual environment, ours may differ.
  return (
    subprocess.run(
      [sys.executable, '-c', 'import ensurepip, venv'],
      capture_output=True,
      check=False,
    ).returncode
    == 0
  )


def _ReportProgress(line: str) -> None:
  words = line.split()
  if line.startswith('Collecting '):
    common.Say(f'  {words[1]}')
  elif line.startswith('Installing collected packages'):
    common.Say('  unpacking')


def _PipReason(output: str) -> str | None:
  match = re.search(r'No matching distribution found for (\S+)', output)
  if match is None:
    return None
  return (
    f'no release of {match.group(1)} is offered for Python '
    f'{sys.version_info[0]}.{sys.version_info[1]} on this machine'
  )
