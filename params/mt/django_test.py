"""Tests of django: sizes and batches, without data."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import registry
from lingvo_gpipe.gpipe import placement


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class DjangoTest(parameterized.TestCase):
  @parameterized.parameters(('Small', 1.4e6), ('Base', 7.6e6))
  def testSizesAndPlan(self, name, expected):
    params = registry.GetParams(f'mt.django.{name}', 'Train')
    task = params.Instantiate()
    count = sum(s.size for s in tf.nest.flatten(task.VariableSpecs()))
    self.assertAlmostEqual(count / expected, 1.0, delta=0.05)
    source = params.input.Instantiate()
    # One shape only, since rows are packed.
    self.assertLen(source.BatchSpecs(), 1)
    plan = task.Plan(source.BatchSpec())
    self.assertLen(plan.stages, 2)
    self.assertGreater(plan.balance, 0.75)

  def testTestDataOfSmallIsAPart(self):
    for name, expected in (('Small', 10), ('Base', 0)):
      params = registry.GetParams(f'mt.django.{name}', 'Test')
      self.assertEqual(params.input.max_examples_per_group, expected)
      self.assertTrue(params.input.packing)


if __name__ == '__main__':
  absltest.main()
