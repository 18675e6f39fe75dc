"""Entry point of tools/bazelw, which starts this folder as a program."""

from __future__ import annotations

import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]

if __name__ == '__main__':
  sys.path.insert(0, str(_ROOT))
  from tools.launcher import launcher

  sys.exit(launcher.Main(_ROOT, sys.argv[1:]))
