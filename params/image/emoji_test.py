"""Tests of emoji: what its docstrings and docs promise of it."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import registry
from params.image import emoji


class AmoebaNetEmojiTest(absltest.TestCase):
  def testRegisteredName(self):
    cls = registry.GetClass('image.emoji.AmoebaNetEmoji')
    self.assertIs(cls, emoji.AmoebaNetEmoji)

  def testDatasets(self):
    model = emoji.AmoebaNetEmoji()
    self.assertEqual(model.GetDatasetNames(), ['Train', 'Dev', 'Test'])
    params = [model.GetDatasetParams(x) for x in model.GetDatasetNames()]
    self.assertEqual([p.split for p in params], ['train', 'dev', 'test'])
    self.assertEqual([p.training for p in params], [True, False, False])
    for p in params:
      self.assertEqual(
        p.Instantiate().BatchSpec().inputs.shape[1:], [32, 32, 3]
      )

  def testParameters(self):
    task = emoji.AmoebaNetEmoji().Model().Instantiate()
    specs = tf.nest.flatten(task.VariableSpecs())
    self.assertEqual(sum(s.size for s in specs if s.trainable), 97_113)

  def testMicroBatches(self):
    model = emoji.AmoebaNetEmoji()
    self.assertEqual(model.BATCH_SIZE % model.NUM_MICRO_BATCHES, 0)
    self.assertEqual(
      model.Model().net.num_micro_batches, model.NUM_MICRO_BATCHES
    )


if __name__ == '__main__':
  absltest.main()
