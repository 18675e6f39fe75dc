"""Finds installed catalogues of translations: of Django, and of VLC.

They are read where they are, never copied; Django itself is not imported.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from typing import NamedTuple

from lingvo_gpipe import user_error
from tasks.mt import parallel_text

# Where Debian and others have the catalogues of programs.
_SYSTEM = '/usr/share/locale'


class Catalogue(NamedTuple):
  """A file of translations from English."""

  language: str
  path: str


def Django() -> list[Catalogue]:
  """The catalogues in Django's package, of all its applications.

  Returns:
    Them, sorted, English variants left out.

  Raises:
    UserError: where Django is not installed, or has none.
  """
  spec = importlib.util.find_spec('django')
  if spec is None or not spec.submodule_search_locations:
    raise user_error.UserError(
      "--source=django: Django, whose package carries the translations, isn't "
      "installed; run pip install 'django>=5.2,<6'"
    )
  found = []
  for folder in spec.submodule_search_locations:
    found += _Find(folder, '*.mo')
  if not found:
    raise user_error.UserError(
      f'--source=django: {spec.submodule_search_locations[0]} has no '
      'locale/*/LC_MESSAGES/*.mo; install Django from its wheel, with pip'
    )
  return found


def Vlc(folder: str = '') -> list[Catalogue]:
  """The catalogues of the VLC media player.

  Args:
    folder: to look in, at any depth; '' is where the system has them.

  Returns:
    Them, sorted, English variants left out.

  Raises:
    UserError: where there are none.
  """
  folder = os.path.expanduser(folder) or _SYSTEM
  found = _Find(folder, 'vlc.mo')
  if not found:
    raise user_error.UserError(
      f'--source=vlc: no */LC_MESSAGES/vlc.mo in {folder}; install the package '
      'vlc-l10n (Debian, Ubuntu), or unpack it (dpkg-deb -x) and name its '
      'folder as in --source=vlc:FOLDER'
    )
  return found


def _Find(folder: str, name: str) -> list[Catalogue]:
  pattern = os.path.join(glob.escape(folder), '**', '*', 'LC_MESSAGES', name)
  found = []
  for path in sorted(glob.glob(pattern, recursive=True)):
    code = path.split(os.sep)[-3]
    if not parallel_text.IsEnglish(code.replace('-', '_')):
      found.append(Catalogue(parallel_text.Language(code, path), path))
  return found
