"""Programs of other frameworks, as processes that run a step when asked.

They speak a protocol of lines: a Setup in JSON goes in, `{"ready": version}`
comes out; then the name of a configuration goes in, and `{"loss": number}`
comes out when its step is done. While they are not asked, they wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any


class PeerError(RuntimeError):
  """A program has ended, or cannot be run."""


class PeerProcesses(contextlib.AbstractContextManager):
  """Processes that work together, such as the stages of a pipeline.

  Attributes:
    version: that the program reports.
  """

  def __init__(
    self, python: str, program: str, setups: Sequence[Mapping[str, Any]]
  ):
    """Starts them, without waiting.

    Args:
      python: interpreter that has the framework.
      program: path of the program.
      setups: of each process, ready for json.dump.
    """
    self.version = ''
    self._logs = [tempfile.TemporaryFile() for _ in setups]  # noqa: SIM115
    self._processes = [
      subprocess.Popen(
        [python, '-P', program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=_Environment(),
      )
      for log in self._logs
    ]
    with contextlib.suppress(BrokenPipeError):  # Told by WaitUntilReady.
      self._Write([json.dumps(setup) for setup in setups])

  def WaitUntilReady(self) -> None:
    """Waits until all have built their configurations."""
    self.version = self._ReadAll()[0]['ready']

  def Step(self, name: str) -> float:
    """Runs a step.

    Args:
      name: of a configuration of the setups.

    Returns:
      The loss before the update.
    """
    self._Write([name] * len(self._processes))
    losses = [reply['loss'] for reply in self._ReadAll()]
    return next(loss for loss in losses if loss is not None)

  def _Write(self, lines: Sequence[str]) -> None:
    for process, line in zip(self._processes, lines, strict=True):
      process.stdin.write(f'{line}\n'.encode())
      process.stdin.flush()

  def _ReadAll(self) -> list[dict[str, Any]]:
    replies = []
    for i, process in enumerate(self._processes):
      line = process.stdout.readline()
      if not line:
        self._Raise(i)
      replies.append(json.loads(line))
    return replies

  def _Raise(self, i: int) -> None:
    status = self._processes[i].wait()
    self._logs[i].seek(0)
    lines = self._logs[i].read().decode(errors='replace').strip().splitlines()
    raise PeerError(
      f'{self._processes[i].args[-1]}, process {i}, ended with status '
      f'{status}: {lines[-1] if lines else "no message"}'
    )

  def __exit__(self, *unused_exc) -> None:
    for process in self._processes:
      process.kill()
    for process, log in zip(self._processes, self._logs, strict=True):
      process.wait()
      process.stdin.close()
      process.stdout.close()
      log.close()


def CanImport(python: str, module: str) -> bool:
  """Whether an interpreter can import a module.

  Args:
    python: the interpreter.
    module: its full name.

  Returns:
    False also where there is no such interpreter.
  """
  try:
    done = subprocess.run(
      [python, '-P', '-c', f'import {module}'],
      capture_output=True,
      env=_Environment(),
      check=False,
    )
  except OSError:
    return False
  return done.returncode == 0


def _Environment() -> dict[str, str]:
  # The way to this project's modules is none to theirs.
  return {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
