"""Starts the trainer as a process of its own, for tests."""

from __future__ import annotations

import subprocess
import sys

from lingvo_gpipe import child_process

MODELS = 'lingvo_gpipe.trainer_test_models'


def Start(*args: str) -> subprocess.Popen:
  """The process of `trainer <args>`, with its output as text in pipes."""
  return subprocess.Popen(
    [sys.executable, '-m', 'lingvo_gpipe.trainer', *args],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=child_process.Environment(),
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
