"""Folders and settings that Bazel is started with."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
from collections.abc import Mapping

from tools.launcher import bazel as bazel_lib
from tools.launcher import common, environment

# Bazel refuses a workspace path with spaces, and its scripts trip over other
# signs that shells treat specially.
_SAFE_PATH = re.compile(r'[\w./+@%=,-]*', re.ASCII)

# Where the cache goes if the home folder's path is not safe: on disk, and not
# emptied by a reboot.
_FALLBACK = pathlib.Path('/var/tmp')

# Entries of the source tree that Bazel has no use for.
_NOT_MIRRORED = {'.git'}

_SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

# Variables that carry the caller's folders to a program that `run` starts.
WORKING_DIRECTORY = 'LINGVO_GPIPE_WORKING_DIRECTORY'
SOURCE_TREE = 'LINGVO_GPIPE_SOURCE_TREE'


def IsSafe(path: pathlib.Path) -> bool:
  return _SAFE_PATH.fullmatch(str(path)) is not None


def CacheDir(environ: Mapping[str, str]) -> pathlib.Path:
  """Creates and returns the folder of everything the launcher makes.

  Args:
    environ: LINGVO_GPIPE_CACHE names the folder; by default it is
      `lingvo_gpipe` in XDG_CACHE_HOME or ~/.cache.

  Raises:
    LauncherError: the folder cannot be written, or its path has spaces.
  """
  if given := environ.get('LINGVO_GPIPE_CACHE'):
    cache = pathlib.Path(given).absolute()
    if not IsSafe(cache):
      raise common.LauncherError(
        f'LINGVO_GPIPE_CACHE={given}: Bazel cannot work below a path with '
        'spaces or special characters; choose another.'
      )
  else:
    base = environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    cache = pathlib.Path(base).absolute() / 'lingvo_gpipe'
    if not IsSafe(cache):
      cache = _FALLBACK / f'lingvo_gpipe-{os.geteuid()}'
  try:
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
  except OSError as error:
    raise common.LauncherError(
      f'{cache} cannot be made ({error.strerror}). Set LINGVO_GPIPE_CACHE to a '
      'folder that can be written and has 5 GiB of free space.'
    ) from error
  if cache.stat().st_uid != os.geteuid() or not os.access(cache, os.W_OK):
    raise common.LauncherError(
      f'{cache} belongs to another user or cannot be written. Set '
      'LINGVO_GPIPE_CACHE to a folder of your own with 5 GiB of free space.'
    )
  return cache


def StateDir(root: pathlib.Path, cache: pathlib.Path) -> pathlib.Path:
  """The part of the cache that belongs to one source tree."""
  digest = hashlib.sha256(str(root).encode()).hexdigest()[:8]
  return cache / 'trees' / digest


def Mirror(root: pathlib.Path, state: pathlib.Path) -> pathlib.Path:
  """Returns a path by which Bazel can use the source tree.

  Args:
    root: the source tree.
    state: its StateDir.

  Returns:
    `root` if Bazel can work there; else a folder with a link to each of its
    entries, brought up to date.
  """
  if IsSafe(root):
    return root
  mirror = state / root.name if IsSafe(pathlib.Path(root.name)) else state / 'w'
  mirror.mkdir(parents=True, exist_ok=True)
  entries = {x.name for x in root.iterdir()} - _NOT_MIRRORED
  for link in mirror.iterdir():
    if link.is_symlink() and link.name not in entries:
      link.unlink()
  for name in entries:
    link = mirror / name
    if not link.is_symlink():
      link.symlink_to(root / name)
  return mirror


def WriteBazelrc(
  state: pathlib.Path,
  tree: pathlib.Path,
  bazel: bazel_lib.Bazel,
  env: environment.Environment,
  called_elsewhere: bool,
) -> pathlib.Path:
  """Writes the settings that depend on this machine.

  Args:
    state: folder for the file.
    tree: the source tree as Bazel sees it.
    bazel: the Bazel that will read the file.
    env: the Python environment.
    called_elsewhere: whether Bazel runs in another folder than the caller's, so
      that BUILD_WORKING_DIRECTORY would be wrong for the programs it starts.

  Returns:
    The file. Its name depends on its content: concurrent launchers with other
    settings do not disturb each other.
  """
  lines = [
    f'build --action_env=PATH={env.bin_dir}:{_SYSTEM_PATH}',
    f'test --test_env=LINGVO_GPIPE_ENVIRONMENT={env.fingerprint}',
  ]
  if bazel.is_debian:
    rules = tree / 'tools' / 'launcher' / 'debian_rules'
    overrides = {
      'rules_cc': rules,
      'remote_coverage_tools': rules,
      **bazel_lib.DEBIAN_RULES,
    }
    lines += [
      f'{command} --override_repository={name}={path}'
      for command in ('build', 'query', 'fetch', 'sync')
      for name, path in overrides.items()
    ]
  if called_elsewhere:
    # Bazel hands this to a shell, which fills in the variables.
    variables = (
      f'BUILD_WORKING_DIRECTORY="${WORKING_DIRECTORY}" '
      f'BUILD_WORKSPACE_DIRECTORY="${SOURCE_TREE}"'
    )
    lines.append(f"run '--run_under=env {variables}'")
  text = '\n'.join(lines) + '\n'
  digest = hashlib.sha256(text.encode()).hexdigest()[:8]
  rc = state / f'{digest}.bazelrc'
  if not rc.exists():
    state.mkdir(parents=True, exist_ok=True)
    common.WriteAtomically(rc, text)
  return rc
