"""Records some steps with TensorFlow's profiler, for TensorBoard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


class StepProfiler:
  """Starts and stops the profiler around the steps that are wanted.

  Args:
    steps: to be recorded, by how many were done before; may be empty. Of those
      that were done already, none is.
    directory: of the run's summaries.
    show: takes a line.
  """

  def __init__(
    self, steps: range, directory: str, show: Callable[[str], Any] = print
  ):
    self._steps = steps
    self._directory = directory
    self._show = show
    self._running = False

  @contextlib.contextmanager
  def Step(self, step: int) -> Iterator[None]:
    """Around a step.

    Args:
      step: how many steps were done before it.
    """
    if step not in self._steps:
      yield
      return
    if not self._running:
      tf.profiler.experimental.start(self._directory)
      self._running = True
    try:
      with tf.profiler.experimental.Trace('train', step_num=step, _r=1):
        yield
    except BaseException:
      self._Stop()
      raise
    if step == self._steps[-1]:
      self._Stop()
      self._show(
        f'steps {self._steps[0]} to {step} are profiled: tensorboard --logdir '
        f'{self._directory}'
      )

  def _Stop(self) -> None:
    self._running = False
    tf.profiler.experimental.stop()
