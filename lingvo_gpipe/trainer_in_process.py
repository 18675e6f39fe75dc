"""Runs the trainer in the process of a test."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any
from unittest import mock

from absl.testing import flagsaver

from lingvo_gpipe import command_line, trainer
from lingvo_gpipe.jobs import train_program


def Main(*args: str) -> tuple[int, str, str]:
  """The trainer's flags and Main: (exit status, stdout, stderr)."""
  stdout, stderr = io.StringIO(), io.StringIO()
  with (
    contextlib.redirect_stdout(stdout),
    contextlib.redirect_stderr(stderr),
    flagsaver.flagsaver(),
  ):
    try:
      status = trainer.Main(command_line.ParseFlags(['trainer', *args]))
    except SystemExit as e:
      status = e.code
  return status, stdout.getvalue(), stderr.getvalue()


def Before(
  step: int, action: Callable[[], Any]
) -> contextlib.AbstractContextManager[Any]:
  """A context in which `action` is called when batch `step` is fetched."""
  fetch = train_program.TrainProgram._Next

  def _Next(self):
    if self.step == step:
      action()
    return fetch(self)

  return mock.patch.object(train_program.TrainProgram, '_Next', _Next)
