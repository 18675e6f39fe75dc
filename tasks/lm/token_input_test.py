"""Tests of token_input."""

import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.lm import token_input


class TokenInputTest(tf.test.TestCase, parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.create_tempdir().full_path
    os.mkdir(os.path.join(folder, 'train'))
    np.save(os.path.join(folder, 'train', 'a.npy'), np.arange(100, 123))
    self.params = token_input.TokenInput.Params().Set(
      data_dir=folder, batch_size=2, sequence_length=5, vocab_size=200
    )

  def testEveryTokenButTheFirstIsALabelOnce(self):
    inputs = self.params.Instantiate()
    self.assertEqual((inputs.num_examples, inputs.num_batches), (5, 3))
    batches = list(inputs.Dataset())
    labels = []
    for batch in batches:
      counts = (1 - batch['paddings']) * batch['weights'][:, tf.newaxis]
      real = tf.boolean_mask(batch['labels'], counts > 0)
      # A label is what comes after its input.
      self.assertAllEqual(
        real, tf.boolean_mask(batch['inputs'], counts > 0) + 1
      )
      labels += real.numpy().tolist()
    self.assertEqual(labels, list(range(101, 123)))
    self.assertAllEqual(batches[-1]['weights'], [1, 0])
    self.assertAllEqual(batches[-1]['paddings'][0], [0, 0, 1, 1, 1])

  def testBatchesFitTheirSpec(self):
    inputs = self.params.Instantiate()
    spec = inputs.BatchSpec()
    for batch in inputs.Dataset():
      self.assertCountEqual(batch, spec)
      for name, value in batch.items():
        self.assertEqual(value.shape, spec[name].shape)
        self.assertEqual(value.dtype, spec[name].dtype)

  def testTrainingIsAFunctionOfThePosition(self):
    params = self.params.Set(training=True)

    def _Rows(position, count, seed=1):
      dataset = params.Copy().Set(random_seed=seed).Instantiate()
      batches = dataset.Dataset(position).take(count)
      return np.concatenate([b['inputs'] for b in batches])

    rows = _Rows(0, 5)
    self.assertAllEqual(_Rows(2, 3), rows[4:])
    self.assertNotAllEqual(_Rows(0, 5, seed=2), rows)
    # Two epochs, each with every row once, in orders of their own.
    starts = rows[:, 0].tolist()
    self.assertCountEqual(starts[:5], range(100, 125, 5))
    self.assertCountEqual(starts[5:], range(100, 125, 5))
    self.assertNotEqual(starts[:5], starts[5:])

  @parameterized.parameters(
    ({'split': 'valid'}, "split='valid' is none of train, dev, test"),
    ({'sequence_length': 0}, 'sequence_length=0 must be 1 or more'),
  )
  def testWrongParams(self, values, message):
    with self.assertRaisesRegex(ValueError, message):
      self.params.Set(**values).Instantiate()

  def testCountingMakesNoTensor(self):
    """It would fix TensorFlow's devices before the trainer sets them up."""
    inputs = self.params.Instantiate()
    with mock.patch.object(tf, 'constant', side_effect=AssertionError):
      self.assertEqual(inputs.num_batches, 3)

  def testSpecNeedsNoData(self):
    params = token_input.TokenInput.Params().Set(data_dir='/not/here')
    self.assertEqual(params.Instantiate().BatchSpec().inputs.shape, (64, 128))


if __name__ == '__main__':
  tf.test.main()
