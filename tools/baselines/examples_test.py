"""Tests of examples."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_input, nested_map, user_error
from tasks.image import digits_input
from tools.baselines import examples


class _Words(base_input.BaseInput):
  def BatchSpec(self):
    n = self.params.batch_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n, 7], tf.int32), weights=tf.TensorSpec([n])
    )


class ExamplesTest(tf.test.TestCase):
  def testRead(self):
    # 364 examples: the last mini-batch is filled up.
    params = digits_input.DigitsInput.Params().Set(split='test', batch_size=50)
    generator = params.Instantiate()
    examples.CheckIsImages(generator)
    data = examples.Read(generator)
    images, labels = digits_input.Load()
    part = digits_input.Split(labels)['test']
    self.assertAllEqual(data.pixels, images[part].reshape(-1, 64))
    self.assertAllEqual(data.labels, labels[part])
    self.assertEqual(data.pixels.dtype, np.float32)

  def testTraining(self):
    params = digits_input.DigitsInput.Params().Set(training=True)
    with self.assertRaisesRegex(ValueError, 'training=True has no end'):
      examples.Read(params.Instantiate())

  def testOtherInputs(self):
    with self.assertRaisesRegex(
      user_error.UserError,
      '_Words is no input of labelled images: its batches have inputs, weights',
    ):
      examples.CheckIsImages(_Words.Params().Instantiate())


if __name__ == '__main__':
  tf.test.main()
