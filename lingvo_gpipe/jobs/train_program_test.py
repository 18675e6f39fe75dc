"""Tests of train_program."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import nested_map
from lingvo_gpipe.jobs import progress, train_program


class _Task:
  """Gives back the batch and the step that it was called with."""

  def __init__(self):
    self.num_traces = 0

  def TrainStep(self, batch, global_step):
    self.num_traces += 1
    assert isinstance(batch, nested_map.NestedMap)
    return nested_map.NestedMap(value=batch.value, step=global_step)


class _Input:
  def __init__(self, end=None):
    self._end = end
    self.positions = []

  def Dataset(self, position):
    self.positions.append(position)
    end = 1000 if self._end is None else self._end
    return tf.data.Dataset.range(position, end).map(lambda i: {'value': 10 * i})


class _Recorder:
  def __init__(self):
    self.added, self.num_flushed = [], 0

  def Add(self, step, outputs):
    self.added.append((step, int(outputs.value), int(outputs.step)))

  def Flush(self):
    self.num_flushed = len(self.added)


class TrainProgramTest(absltest.TestCase):
  def _Program(self, step=0, end=None):
    self._task, self._input, self._recorder = _Task(), _Input(end), _Recorder()
    self._clock = progress.StepClock()
    return train_program.TrainProgram(
      self._task,
      self._input,
      recorder=self._recorder,
      clock=self._clock,
      step=step,
    )

  def testStepTReadsBatchT(self):
    program = self._Program(step=3)
    program.Run(5, lambda: False)
    program.Run(7, lambda: False)
    self.assertEqual(program.step, 7)
    self.assertEqual(
      self._recorder.added, [(4, 30, 3), (5, 40, 4), (6, 50, 5), (7, 60, 6)]
    )
    self.assertEqual(self._recorder.num_flushed, 4)
    self.assertEqual(self._input.positions, [3])
    self.assertEqual(self._task.num_traces, 1)
    self.assertEqual(self._clock.steps, 3)
    self.assertGreater(self._clock.busy_seconds, 0)

  def testInterruptedBetweenSteps(self):
    program = self._Program()
    answers = [False, False, True]
    program.Run(9, lambda: answers.pop(0))
    self.assertEqual(program.step, 2)
    self.assertEqual(self._recorder.num_flushed, 2)

  def testInputThatEnds(self):
    program = self._Program(end=2)
    with self.assertRaisesRegex(RuntimeError, 'ended after 2 mini-batches'):
      program.Run(3, lambda: False)

  def testWaitingForASlowInputIsMeasured(self):
    program = self._Program()
    seconds = iter(np.arange(100.0))
    self._clock._now = lambda: next(seconds)
    program.Run(2, lambda: False)
    self.assertEqual(self._clock.Interval(), (1 / 2, 1 / 2))


if __name__ == '__main__':
  absltest.main()
