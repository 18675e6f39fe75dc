"""Runs the tools as a user does, for tests."""

from __future__ import annotations

import subprocess
import sys

from lingvo_gpipe import child_process


def Run(tool: str, *args: str) -> subprocess.CompletedProcess:
  """The ended process of `python -m tools.benchmarks.<tool> <args>`."""
  return RunModule(f'tools.benchmarks.{tool}', *args)


def RunModule(module: str, *args: str) -> subprocess.CompletedProcess:
  """The ended process of `python -m <module> <args>`."""
  return subprocess.run(
    [sys.executable, '-P', '-m', module, *args],
    capture_output=True,
    text=True,
    env=child_process.Environment(),
    check=False,
  )
