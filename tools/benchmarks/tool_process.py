"""Runs the tools as a user does, for tests."""

from __future__ import annotations

import os
import subprocess
import sys


def Run(tool: str, *args: str) -> subprocess.CompletedProcess:
  """The ended process of `python -m tools.benchmarks.<tool> <args>`."""
  paths = os.pathsep.join(filter(None, sys.path))
  return subprocess.run(
    [sys.executable, '-P', '-m', f'tools.benchmarks.{tool}', *args],
    capture_output=True,
    text=True,
    env={**os.environ, 'PYTHONPATH': paths},
    check=False,
  )
