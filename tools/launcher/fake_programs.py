"""Shell scripts that stand in for real programs in the launcher's tests."""

from __future__ import annotations

import pathlib
import shlex
import shutil
import sys

# What tools/bazelw and the scripts below need of the system.
_SYSTEM_PROGRAMS = ('cat', 'dirname', 'env', 'mkdir', 'readlink', 'sh', 'tail')


def Write(path: pathlib.Path, script: str) -> pathlib.Path:
  """Writes an executable shell script."""
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(f'#!/bin/sh\n{script}\n')
  path.chmod(0o755)
  return path


def WriteBinDir(folder: pathlib.Path) -> pathlib.Path:
  """Makes a folder for PATH: basic programs and python3, nothing else.

  In particular it has no bazel, apt-get or sudo, wherever the test runs.
  """
  folder.mkdir(parents=True, exist_ok=True)
  for name in _SYSTEM_PROGRAMS:
    program = shutil.which(name, path='/usr/local/bin:/usr/bin:/bin')
    assert program is not None, name
    (folder / name).symlink_to(program)
  Write(folder / 'python3', f'exec {shlex.quote(sys.executable)} "$@"')
  return folder


def WriteBazel(
  path: pathlib.Path, version: str = 'no_version', status: int = 0
) -> pathlib.Path:
  """A Bazel that reports how it was started, and ends with `status`.

  Without `--version` it prints its folder, the first python3 of PATH, its
  arguments, and the file that --bazelrc names.
  """
  return Write(
    path,
    f"""
if [ "$1" = --version ]; then
  echo "bazel {version}"
  exit
fi
echo "cwd=$PWD"
echo "python3=$(command -v python3)"
echo "from=${{LINGVO_GPIPE_WORKING_DIRECTORY:-}}"
for arg; do
  echo "arg=$arg"
  case $arg in --bazelrc=*) cat -- "${{arg#--bazelrc=}}" ;; esac
done
exit {status}
""",
  )
