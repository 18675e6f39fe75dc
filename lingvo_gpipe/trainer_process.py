"""Starts the trainer as a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys

MODELS = 'lingvo_gpipe.trainer_test_models'


def Start(*args: str) -> subprocess.Popen:
  """The process of `trainer <args>`, with its output as text in pipes."""
  paths = os.pathsep.join(filter(None, sys.path))
  return subprocess.Popen(
    [sys.executable, '-m', 'lingvo_gpipe.trainer', *args],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env={**os.environ, 'PYTHONPATH': paths},
  )


def ReadToStep(process: subprocess.Popen, step: int) -> list[str]:
  """Reads lines until one of progress shows `step` or a later one.

  Args:
    process: from Start.
    step: steps done.

  Returns:
    The lines.

  Raises:
    AssertionError: where the output ends before.
  """
  lines = []
  for line in process.stdout:
    lines.append(line)
    if line.startswith('step ') and int(line[5:].partition('/')[0]) >= step:
      return lines
  stderr = process.stderr.read()
  raise AssertionError(f'no line of step {step}: {"".join(lines)}{stderr}')
