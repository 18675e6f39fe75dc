"""Python processes that tests of workers start, and whether they live."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from lingvo_gpipe import child_process


def Start(program: str, *args: str, **kwargs: Any) -> subprocess.Popen:
  """A process that runs a program's text, with its output in a pipe.

  Args:
    program: Python.
    *args: sys.argv[1:].
    **kwargs: of Popen.

  Returns:
    The process.
  """
  return subprocess.Popen(
    [sys.executable, '-c', program, *args],
    stdout=subprocess.PIPE,
    text=True,
    env=child_process.Environment(),
    **kwargs,
  )


def IsAlive(pid: int) -> bool:
  """Whether a process is there, and no zombie."""
  try:
    with open(f'/proc/{pid}/stat') as f:
      return f.read().rpartition(')')[2].split()[0] != 'Z'
  except (FileNotFoundError, ProcessLookupError):  # Before, or in between.
    return False
