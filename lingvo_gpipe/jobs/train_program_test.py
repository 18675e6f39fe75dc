"""Tests of train_program."""

import itertools
import weakref

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import base_input, base_task, nested_map
from lingvo_gpipe.gpipe import placement, test_cells
from lingvo_gpipe.jobs import progress, train_program
from lingvo_gpipe.train import optimizers

_DIM = 3


def setUpModule():
  placement.ConfigureLogicalCpus(2)


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


class _Outputs:
  """A recorder that keeps the loss of each step."""

  def __init__(self):
    self.losses = []

  def Add(self, unused_step, outputs, unused_batch):
    self.losses.append(float(outputs.loss))

  def Flush(self):
    pass


class _Recorder:
  def __init__(self):
    self.added, self.num_flushed = [], 0

  def Add(self, step, outputs, unused_batch):
    self.added.append((step, int(outputs.value), int(outputs.step)))

  def Flush(self):
    self.num_flushed = len(self.added)


class _Buckets(base_input.BaseInput):
  """Random sequences of 8 and 5 places in turn, without end."""

  LENGTHS = (8, 5)

  def _Spec(self, length):
    n = self.params.batch_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n, length, _DIM], tf.float64),
      labels=tf.TensorSpec([n, length], tf.float64),
      weights=tf.TensorSpec([n, length], tf.float64),
    )

  def BatchSpec(self):
    return self._Spec(max(self.LENGTHS))

  def BatchSpecs(self):
    return [self._Spec(length) for length in self.LENGTHS]

  def Batch(self, position):
    """The mini-batch of a position."""
    spec = self._Spec(self.LENGTHS[position % len(self.LENGTHS)])
    return {
      name: tf.random.stateless_uniform(x.shape, (k, position), dtype=x.dtype)
      for k, (name, x) in enumerate(sorted(spec.items()))
    }

  def Dataset(self, position=0):
    def _Batches():
      return map(self.Batch, itertools.count(position))

    signature = {
      name: tf.TensorSpec([x.shape[0], None, *x.shape[2:]], x.dtype)
      for name, x in self.BatchSpec().items()
    }
    return tf.data.Dataset.from_generator(_Batches, output_signature=signature)


def _SequenceTask(batch_spec, num_partitions):
  p = base_task.BaseTask.Params().Set(name='task', dtype=tf.float64)
  linear = test_cells.Linear.Params().Set(
    input_dim=_DIM, output_dim=_DIM, keep_prob=0.7
  )
  p.net.Set(
    cells=[
      linear.Copy().Set(name='first'),
      linear.Copy().Set(name='second'),
      test_cells.Head.Params().Set(name='head', input_dim=_DIM, output_dim=1),
    ],
    num_partitions=num_partitions,
    num_micro_batches=4,
  )
  p.train.learner.Set(optimizer=optimizers.Momentum.Params(), learning_rate=0.1)
  task = p.Instantiate()
  task.Plan(batch_spec)
  task.InstantiateVariables()
  return task


class LengthsTest(absltest.TestCase):
  def testLengthsInTurnEqualStepsByHandWithAnotherK(self):
    inputs = _Buckets.Params().Set(batch_size=8).Instantiate()
    # The partitions are planned for the largest mini-batch.
    tasks = [_SequenceTask(inputs.BatchSpec(), k) for k in (2, 1)]
    collected = _Outputs()
    program = train_program.TrainProgram(
      tasks[0],
      inputs,
      recorder=collected,
      clock=progress.StepClock(),
      step=0,
    )
    program.Run(5, lambda: False)
    # A new program goes on at any place.
    program = train_program.TrainProgram(
      tasks[0],
      inputs,
      recorder=collected,
      clock=progress.StepClock(),
      step=5,
    )
    program.Run(8, lambda: False)
    self.assertLen(collected.losses, 8)
    for step, loss in enumerate(collected.losses):
      outputs = tasks[1].TrainStep(
        nested_map.NestedMap(inputs.Batch(step)), tf.constant(step, tf.int64)
      )
      np.testing.assert_allclose(loss, outputs.loss, rtol=1e-12)
    ours, theirs = [task.variables_for_checkpoint for task in tasks]
    self.assertEqual(ours.keys(), theirs.keys())
    for path, variable in ours.items():
      np.testing.assert_allclose(variable, theirs[path], rtol=1e-10)
    self.assertLen(tasks[0].net._traced, len(inputs.LENGTHS))


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

  def testClosedItReadsNoMore(self):
    program = self._Program()
    program.Run(2, lambda: False)
    batches = weakref.ref(program._batches)
    program.Close()
    self.assertIsNone(batches())
    program.Run(3, lambda: False)
    self.assertEqual(self._input.positions, [0, 2])

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
