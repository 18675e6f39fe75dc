"""Tests of eval_batches."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import base_input, nested_map, user_error
from lingvo_gpipe.jobs import eval_batches


class _Broken(base_input.BaseInput):
  """Its second batch cannot be read."""

  def Dataset(self, position=0):
    def _Batch(i):
      fine = base_input.Check(i < 1, lambda: tf.constant('file x: no picture'))
      with tf.control_dependencies([fine]):
        return {'inputs': tf.identity(i)}

    return tf.data.Dataset.range(2).map(_Batch)


class EvalBatchesTest(absltest.TestCase):
  def testErrorsOfDataAreTheUsers(self):
    batches = eval_batches.Read(_Broken.Params().Instantiate())
    self.assertEqual(int(next(batches).inputs), 0)
    with self.assertRaisesRegex(user_error.UserError, 'file x: no picture'):
      next(batches)

  def testIsExample(self):
    batch = nested_map.NestedMap(
      a=tf.constant([1.0, 0.0, 0.5]), b=tf.constant([[0.0, 0.0], [0.0, 1.0]])
    )
    for name, expected in (('a', [True, False, True]), ('b', [False, True])):
      np.testing.assert_array_equal(
        eval_batches.IsExample(batch, name), expected
      )


if __name__ == '__main__':
  absltest.main()
