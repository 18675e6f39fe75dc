"""Tests of eval_program."""

import json
import os

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import nested_map, trainer_test_models
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import eval_program, predictions


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class EvalProgramTest(absltest.TestCase):
  def testMeansAreOverExamplesNotBatches(self):
    task, inputs = trainer_test_models.MakeTiny()
    test = inputs['test']
    self.assertEqual(test.num_examples, 40)  # In batches of 16, 16 and 8.
    # All examples in one batch of 40, without any padding.
    indices = tf.range(40, dtype=tf.int64)
    whole = nested_map.NestedMap(
      test.Examples(indices, tf.zeros([2], tf.int64)), weights=tf.ones([40])
    )
    expected = task.EvalStep(whole)
    result = eval_program.EvalProgram(task, test, 'test').Run()
    self.assertEqual((result.num_batches, result.num_examples), (3, 40))
    self.assertAlmostEqual(
      result.metrics['loss'], float(expected.loss.Mean()), places=6
    )
    self.assertAlmostEqual(
      result.metrics['accuracy'], float(expected.accuracy.Mean()), places=6
    )

  def testFollowsTheVariables(self):
    task, inputs = trainer_test_models.MakeTiny()
    program = eval_program.EvalProgram(task, inputs['dev'], 'dev')
    before = program.Run().metrics['loss']
    for weight in tf.nest.flatten(task.vars):
      weight.assign(2 * weight)
    self.assertNotEqual(before, program.Run().metrics['loss'])

  def testRateIsWithoutTheFirstBatch(self):
    task, inputs = trainer_test_models.MakeTiny()
    seconds = iter([0.0, 100.0, 101.0, 104.0])
    program = eval_program.EvalProgram(
      task, inputs['test'], 'test', now=lambda: next(seconds)
    )
    # Batches of 16, 16 and 8.
    self.assertEqual(program.Run().examples_per_second, 24 / 4)
    seconds = iter([0.0, 10.0])
    inputs['test'].params = inputs['test'].params.Copy().Set(batch_size=50)
    program = eval_program.EvalProgram(
      task, inputs['test'], 'test', now=lambda: next(seconds)
    )
    self.assertEqual(program.Run().examples_per_second, 40 / 10)

  def testMetricNamesBuildTheGraphOfRun(self):
    task, inputs = trainer_test_models.MakeTiny()
    program = eval_program.EvalProgram(task, inputs['test'], 'test')
    self.assertCountEqual(program.MetricNames(), ['loss', 'accuracy'])
    program.CheckPredictions()
    program.Run()
    functions = (program._step, program._step_with_outputs)
    for function in functions:
      self.assertEqual(function.experimental_get_tracing_count(), 1)

  def testNothingToEvaluate(self):
    task, inputs = trainer_test_models.MakeTiny()
    program = eval_program.EvalProgram(task, _NoWeights(inputs['dev']), 'dev')
    with self.assertRaisesRegex(
      ValueError, 'the dev data gave 2 batches and no example with any weight'
    ):
      program.Run()


class PredictionsTest(parameterized.TestCase):
  """Whatever K, M and the batches are, the same lines are written."""

  def _Lines(self, num_partitions=1, num_micro_batches=1, batch_size=40):
    model = trainer_test_models.Tiny()
    p = model.Model()
    p.net.Set(
      num_partitions=num_partitions,
      num_micro_batches=num_micro_batches,
      pad_batches=True,
    )
    task = p.Instantiate()
    spec = model.Train().Set(batch_size=16).Instantiate().BatchSpec()
    task.Plan(spec)
    task.InstantiateVariables()
    test = model.Test().Set(batch_size=batch_size).Instantiate()
    program = eval_program.EvalProgram(task, test, 'test')
    path = os.path.join(self.create_tempdir().full_path, 'predictions')
    with predictions.Open(path) as writer:
      result = program.Run(writer=writer)
      writer.Publish()
    with open(path) as f:
      return [json.loads(line) for line in f], result, program.Run()

  @parameterized.parameters((1, 4, 16), (2, 8, 16), (2, 3, 7), (2, 1, 64))
  def testSameLines(self, num_partitions, num_micro_batches, batch_size):
    expected, whole, unused = self._Lines()
    lines, result, without_writer = self._Lines(
      num_partitions, num_micro_batches, batch_size
    )
    self.assertEqual(result.metrics, without_writer.metrics)
    self.assertEqual(result.num_examples, 40)
    self.assertAlmostEqual(result.metrics['loss'], whole.metrics['loss'], 5)
    self.assertLen(lines, 40)
    for line, other in zip(lines, expected, strict=True):
      for name in ('dataset', 'index', 'label', 'predicted'):
        self.assertEqual(line[name], other[name])
      np.testing.assert_allclose(line['top5'], other['top5'], rtol=1e-5)
    correct = [line['label'] == line['predicted'] for line in lines]
    self.assertAlmostEqual(np.mean(correct), result.metrics['accuracy'], 6)


class _NoWeights:
  """An input whose examples have weight 0."""

  def __init__(self, wrapped):
    self._wrapped = wrapped

  def Dataset(self, position):
    return self._wrapped.Dataset(position).map(
      lambda batch: {**batch, 'weights': tf.zeros_like(batch['weights'])}
    )


if __name__ == '__main__':
  absltest.main()
