"""Finds Bazel, or installs the distribution's package."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import subprocess
from collections.abc import Mapping

from tools.launcher import common, debian

TESTED_VERSION = '4.2.3'

# Debian's build looks for these rule repositories on the internet; its packages
# of them (bazel-rules-java, bazel-rules-proto) put them here.
DEBIAN_RULES = {
  'rules_java': pathlib.Path('/usr/share/bazel/rules/java'),
  'rules_proto': pathlib.Path('/usr/share/bazel/rules/proto'),
}
_DEBIAN_PACKAGES = ('bazel-bootstrap', 'bazel-rules-java', 'bazel-rules-proto')


@dataclasses.dataclass(frozen=True)
class Bazel:
  """A Bazel that can be started.

  Attributes:
    path: the program.
    is_debian: whether it is Debian's build, which needs offline stand-ins for
      its rule repositories.
    env: environment variables it has to be started with.
  """

  path: str
  is_debian: bool = False
  env: Mapping[str, str] = dataclasses.field(default_factory=dict)


def Find() -> Bazel | None:
  """Returns the bazel or bazelisk of PATH, if any."""
  path = shutil.which('bazel') or shutil.which('bazelisk')
  if path is None:
    return None
  if 'bazelisk' in pathlib.Path(path).resolve().name:
    # Not asked for its version: it would download the newest Bazel, which the
    # project does not claim to work with.
    return Bazel(path, env={'USE_BAZEL_VERSION': TESTED_VERSION})
  version = _Version(path)
  if version == 'no_version':
    return Bazel(path, is_debian=True)
  if not version.startswith(TESTED_VERSION[:3]):
    common.Say(
      f'{path} is Bazel {version}; the project is tested with {TESTED_VERSION}'
    )
  return Bazel(path)


def FindOrInstall(log: pathlib.Path) -> Bazel:
  """Like Find, but installs Debian's packages where something is missing.

  Args:
    log: file for apt-get's output.

  Raises:
    LauncherError: there is no Bazel and it cannot be installed.
  """
  bazel = Find()
  if bazel is None:
    common.Say('found neither bazel nor bazelisk on PATH')
  elif not bazel.is_debian or all(x.is_dir() for x in DEBIAN_RULES.values()):
    return bazel
  else:
    common.Say('the rule packages of bazel-bootstrap are missing')
  debian.Install(
    _DEBIAN_PACKAGES,
    log,
    'install Bazel or Bazelisk (https://bazel.build/install) so that `bazel` '
    'or `bazelisk` is on PATH, and start again',
  )
  bazel = Find()
  if bazel is None:
    raise common.LauncherError(
      'bazel-bootstrap is installed, but `bazel` is not on PATH: add /usr/bin '
      'to PATH and start again.'
    )
  return bazel


def _Version(path: str) -> str:
  """The version as `bazel --version` prints it, "bazel 4.2.3"."""
  try:
    result = subprocess.run(
      [path, '--version'],
      stdin=subprocess.DEVNULL,
      capture_output=True,
      text=True,
      check=False,
    )
    status, output = result.returncode, result.stdout + result.stderr
  except OSError as error:
    status, output = error.errno, str(error)
  if status != 0:
    last_line = output.strip().splitlines()[-1:] or ['no output']
    raise common.LauncherError(
      f'{path} does not work: `bazel --version` failed ({last_line[0]}). Mend '
      'it or take it off PATH; the launcher then installs another.'
    )
  return output.split()[-1]
