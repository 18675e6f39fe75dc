"""Tests of digits: what its docstrings and the README promise of it."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import registry
from params.image import digits


class AmoebaNetDigitsTest(absltest.TestCase):
  def testRegisteredName(self):
    cls = registry.GetClass('image.digits.AmoebaNetDigits')
    self.assertIs(cls, digits.AmoebaNetDigits)

  def testDatasets(self):
    model = digits.AmoebaNetDigits()
    self.assertEqual(model.GetDatasetNames(), ['Train', 'Dev', 'Test'])
    sizes, training = [], []
    for name in model.GetDatasetNames():
      params = model.GetDatasetParams(name)
      sizes.append(params.Instantiate().num_examples)
      training.append(params.training)
    self.assertEqual(sizes, [1254, 179, 364])
    self.assertEqual(training, [True, False, False])

  def testParameters(self):
    task = digits.AmoebaNetDigits().Model().Instantiate()
    specs = tf.nest.flatten(task.VariableSpecs())
    self.assertEqual(sum(s.size for s in specs if s.trainable), 214_506)

  def testLearningRateEndsAtZeroHoweverLongTheRun(self):
    for max_steps in (900, 100):
      params = digits.AmoebaNetDigits().Model()
      params.train.max_steps = max_steps
      learner = params.Instantiate().learner
      rates = [
        float(learner.LearningRate(tf.constant(step, tf.int64)))
        for step in (0, max_steps // 2, max_steps)
      ]
      self.assertAlmostEqual(rates[0], 0.0)
      self.assertAlmostEqual(rates[1], 0.5 * params.train.learner.learning_rate)
      self.assertAlmostEqual(rates[2], 0.0)


if __name__ == '__main__':
  absltest.main()
