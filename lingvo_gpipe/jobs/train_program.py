"""The training loop: input, step, record; nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_input, cluster, nested_map
from lingvo_gpipe.jobs import progress, recorder, step_profiler


class TrainProgram:
  """Trains a task from a given step on.

  Step t uses mini-batch t of the input, which is a pure function of its seed
  and t. So the number of steps is all that has to be known, besides the
  variables, to go on exactly where a run stopped.

  Args:
    task: a BaseTask with variables.
    input_generator: gives mini-batches without end.
    recorder: receives what each step gives.
    clock: measures the steps.
    step: how many steps were done before.
    profiler: records some steps; None: none.
  """

  def __init__(
    self,
    task: Any,
    input_generator: Any,
    *,
    recorder: recorder.Recorder,
    clock: progress.StepClock,
    step: int,
    profiler: step_profiler.StepProfiler | None = None,
  ):
    self._input = input_generator
    self._recorder = recorder
    self._clock = clock
    self._profiler = profiler or step_profiler.StepProfiler(range(0), '')
    self._step = tf.function(
      cluster.ReturnToClient(task.TrainStep), autograph=False
    )
    self._batches: Iterator[Any] | None = None
    self.step = step

  def Run(self, until: int, interrupted: Callable[[], bool]) -> None:
    """Trains to step `until`; at a return, all is recorded.

    Args:
      until: steps of the whole run to be done.
      interrupted: asked before every step; True returns early.

    Raises:
      RuntimeError: where the input ends.
      UserError: for data that cannot be read.
    """
    while self.step < until and not interrupted():
      with self._profiler.Step(self.step):
        with self._clock.WaitingForInput():
          batch = self._Next()
        with self._clock.Computing():
          outputs = self._step(batch, tf.constant(self.step, tf.int64))
      self.step += 1
      self._recorder.Add(self.step, outputs, batch)
    self._recorder.Flush()

  def Close(self) -> None:
    """Ends the reading of input.

    At the end of the process, Python takes away an iterator without letting
    the threads finish that run Python code of its dataset, and hangs.
    """
    self._batches = None

  def _Next(self) -> nested_map.NestedMap:
    if self._batches is None:
      with tf.device(cluster.INPUT_DEVICE):
        self._batches = iter(self._input.Dataset(self.step).prefetch(2))
    try:
      with base_input.UserErrors():
        return nested_map.NestedMap(next(self._batches))
    except StopIteration:
      raise RuntimeError(
        f'the training data ended after {self.step} mini-batches; the input '
        'generator must repeat it'
      ) from None
