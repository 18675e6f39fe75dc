"""Prepares Bazel and the Python environment, then becomes Bazel."""

from __future__ import annotations

import errno
import os
import pathlib
import sys
from collections.abc import Sequence

from tools.launcher import bazel as bazel_lib
from tools.launcher import common, environment, workspace

_HELP = """\
Usage: tools/bazelw COMMAND [OPTIONS] [TARGETS] [-- PROGRAM OPTIONS]

Runs Bazel in the Python environment of requirements.txt. Examples:
  tools/bazelw test //...
  tools/bazelw run //:trainer -- --help
  tools/bazelw help              Bazel's own help

It can be called from any folder. What is missing is installed on first use:
- Bazel: the `bazel` or `bazelisk` of PATH is taken; without one, the package
  bazel-bootstrap of Debian or Ubuntu is installed, as root or through sudo.
- Python packages: a virtual environment in {cache}
  gets the packages of requirements.txt, and is brought up to date when that
  file changes. The source tree itself is not touched.
Everything after that is up to Bazel, including the exit status. A failure of
the launcher itself ends with status {exit_code}.

Environment variables:
  LINGVO_GPIPE_PYTHON  The python of an environment of yours, for example one
                       with tensorflow-cpu. It must have the packages of
                       requirements.txt, which is checked; nothing is installed.
  LINGVO_GPIPE_CACHE   Folder for the virtual environment and Bazel's outputs
                       (about 3 GB). Default: {cache}
                       Delete it to start afresh or to uninstall.
pip's variables and configuration (mirrors, proxies) are respected.
"""

# Commands that start Python programs, so that the environment has to be ready.
_NEED_PYTHON = {'build', 'coverage', 'run', 'test'}
_OTHER_COMMANDS = {
  'analyze-profile',
  'aquery',
  'canonicalize-flags',
  'clean',
  'cquery',
  'dump',
  'fetch',
  'help',
  'info',
  'license',
  'mobile-install',
  'print_action',
  'query',
  'shutdown',
  'sync',
  'version',
}


def Main(root: pathlib.Path, argv: Sequence[str]) -> int:
  """Runs the launcher; returns only if Bazel is not to be started.

  Args:
    root: the source tree.
    argv: arguments for Bazel.

  Returns:
    Exit status.
  """
  try:
    return _Launch(root, argv)
  except common.LauncherError as error:
    common.Say(f'error: {error}')
  except OSError as error:
    common.Say(f'error: {error}')
    if error.errno == errno.ENOSPC:
      common.Say('the disk is full: free some space and start again')
  except KeyboardInterrupt:
    common.Say('interrupted; the next start takes it up again')
    return 130
  return common.EXIT_CODE


def Command(argv: Sequence[str]) -> str | None:
  """The Bazel command among the arguments (startup options come before it)."""
  known = _NEED_PYTHON | _OTHER_COMMANDS
  return next((x for x in argv if x in known), None)


def _Launch(root: pathlib.Path, argv: Sequence[str]) -> int:
  environ = dict(os.environ)
  cache = workspace.CacheDir(environ)
  if argv[:1] in (['--help'], ['-h']):
    sys.stdout.write(_HELP.format(cache=cache, exit_code=common.EXIT_CODE))
    return 0
  command = Command(argv)
  if command == 'shutdown' and bazel_lib.Find() is None:
    return 0  # Nothing runs; do not install Bazel to stop it.

  bazel = bazel_lib.FindOrInstall(cache / 'apt.log')
  state = workspace.StateDir(root, cache)
  requirements = root / 'requirements.txt'
  if environ.get('LINGVO_GPIPE_PYTHON'):
    env = environment.Given(requirements, state / 'bin')
  elif command in _NEED_PYTHON:
    env = environment.Prepare(requirements, cache)
  else:
    env = environment.Peek(cache)

  tree = workspace.Mirror(root, state)
  caller = pathlib.Path.cwd()
  # Within the source tree Bazel resolves relative targets like `:x` itself.
  inside = tree == root and caller.is_relative_to(root)
  rc = workspace.WriteBazelrc(
    state, tree, bazel, env, called_elsewhere=not inside
  )
  if not inside:
    os.chdir(tree)
    environ[workspace.WORKING_DIRECTORY] = str(caller)
    environ[workspace.SOURCE_TREE] = str(root)
  environ['PATH'] = f'{env.bin_dir}:{environ.get("PATH", "")}'
  for name, value in bazel.env.items():
    environ.setdefault(name, value)
  os.execve(
    bazel.path,
    [
      bazel.path,
      f'--output_user_root={cache / "bazel"}',
      f'--bazelrc={rc}',
      *argv,
    ],
    environ,
  )
