"""Tests of small: what its page promises of it."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import registry
from params.lm import small


class TransformerSmallTest(absltest.TestCase):
  def testRegisteredName(self):
    cls = registry.GetClass('lm.small.TransformerSmall')
    self.assertIs(cls, small.TransformerSmall)

  def testParameters(self):
    task = small.TransformerSmall().Model().Instantiate()
    specs = tf.nest.flatten(task.net.VariableSpecs())
    self.assertEqual(sum(spec.size for spec in specs), 1_223_041)

  def testDataIsThere(self):
    model = small.TransformerSmall()
    for name in model.GetDatasetNames():
      params = model.GetDatasetParams(name)
      self.assertGreater(params.Instantiate().num_batches, 20)
      self.assertEqual(params.training, name == 'Train')


if __name__ == '__main__':
  absltest.main()
