"""Installs Debian or Ubuntu packages."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

from tools.launcher import common


def Install(packages: Sequence[str], log: pathlib.Path, otherwise: str) -> None:
  """Installs packages with apt-get, as root or through sudo.

  Args:
    packages: package names.
    log: file for apt-get's output.
    otherwise: what the user can do where apt-get cannot be used; continues a
      sentence that begins with "Instead," or "Or".

  Raises:
    LauncherError: no apt-get, no way to become root, or apt-get failed.
  """
  names = ' '.join(packages)
  if shutil.which('apt-get') is None:
    raise common.LauncherError(
      f'{names}: cannot be installed, because this system has no apt-get. '
      f'Instead, {otherwise}.'
    )
  by_hand = f'apt-get update && apt-get install {names}'
  if os.geteuid() == 0:
    prefix, how = [], 'as root'
  elif _SudoWorks():
    prefix, how = ['sudo', '-n'], 'through sudo'
  else:
    raise common.LauncherError(
      f'{names}: installing needs root, and sudo is missing or asks for a '
      f'password. Run this as root and start again: {by_hand}\n'
      f'Or {otherwise}.'
    )

  apt_get = [
    *prefix,
    'env',
    'DEBIAN_FRONTEND=noninteractive',
    'apt-get',
    '-o',
    'DPkg::Lock::Timeout=300',  # another apt-get may be at work
  ]
  install = [*apt_get, 'install', '-y', '--no-install-recommends', *packages]
  common.Say(f'installing {names} with apt-get ({how}); log: {log}')
  with common.Lock(log.with_suffix('.lock'), 'installing Debian packages'):
    result = common.RunLogged(install, log)
    if result.status != 0:
      # Fresh containers have no package lists, old ones have stale lists.
      update = common.RunLogged([*apt_get, 'update'], log)
      result = common.RunLogged(install, log)
      if result.status != 0:
        reason = result.Reason() or update.Reason() or f'see {log}'
        raise common.LauncherError(
          f'apt-get could not install {names}: {reason}. By hand, as root: '
          f'{by_hand}\n{result.Tail()}'
        )


def _SudoWorks() -> bool:
  if shutil.which('sudo') is None:
    return False
  return (
    subprocess.run(
      ['sudo', '-n', 'true'],
      stdin=subprocess.DEVNULL,
      capture_output=True,
      check=False,
    ).returncode
    == 0
  )
