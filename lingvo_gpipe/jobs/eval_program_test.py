"""Tests of eval_program."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import nested_map, trainer_test_models
from lingvo_gpipe.jobs import eval_program


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
    self.assertEqual(result.num_batches, 3)
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

  def testNothingToEvaluate(self):
    task, inputs = trainer_test_models.MakeTiny()
    program = eval_program.EvalProgram(task, _NoWeights(inputs['dev']), 'dev')
    with self.assertRaisesRegex(
      ValueError, 'the dev data gave 2 batches and no example with any weight'
    ):
      program.Run()


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
