"""Mini-batches that do not divide: padding changes no result."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.gpipe import (
  gpipe,
  micro_batch,
  placement,
  plain_model,
  test_cells,
)
from lingvo_gpipe.layers import norm


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Carry(test_cells.Carry):
  """An auxiliary loss and a metric of the examples alone."""

  def AddAuxLoss(self, name, total):
    del total  # Of all rows.

  def FProp(self, theta, inputs):
    outputs = super().FProp(theta, inputs)
    squares = tf.reduce_sum(tf.square(outputs.x), -1)
    if self.example_weights is not None:
      squares *= tf.cast(self.example_weights, squares.dtype)
    super().AddAuxLoss('size', 0.01 * tf.reduce_sum(squares))
    return outputs


def _Cells():
  cells = test_cells.Cells()
  cells[1] = norm.BatchNorm.Params().Set(name='norm', dim=4)
  cells[3].cls = _Carry
  return cells


def _Net(batch, **kwargs):
  net = (
    gpipe.GPipe.Params()
    .Set(name='net', cells=_Cells(), dtype=tf.float64, **kwargs)
    .Instantiate()
  )
  net.Plan(micro_batch.Specs(batch))
  net.InstantiateVariables()
  return net


class PaddingTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.product(
    # 10 rows: 3, 3, 3, 1. 9 rows: 2, 2, 2, 2, 1, and a micro-batch of none.
    sizes=((10, 4), (9, 6)),
    num_partitions=(1, 2),
    rematerialize=('none', 'partition'),
  )
  def testEqualsThePlainModel(self, sizes, num_partitions, rematerialize):
    batch_size, num_micro_batches = sizes
    batch = test_cells.Batch(batch_size)
    net = _Net(
      batch,
      num_partitions=num_partitions,
      num_micro_batches=num_micro_batches,
      pad_batches=True,
      rematerialize=rematerialize,
    )
    self.assertEqual(
      net.plan.micro_batch_size, -(-batch_size // num_micro_batches)
    )
    result = tf.function(net.ComputeGradients, autograph=False)(
      batch, tf.constant(0, tf.int64)
    )
    plain = plain_model.ComputeGradients(net.cells, batch, num_micro_batches, 0)
    self.assertAllClose(result.loss, plain.loss, rtol=1e-12)
    self.assertAllClose(
      result.metrics.loss.weight, plain.metrics.loss.weight, rtol=0
    )
    gradients = [g for g in tf.nest.flatten(result.grads) if g is not None]
    for gradient, expected in zip(gradients, plain.grads, strict=True):
      self.assertAllClose(gradient, expected, rtol=1e-9, atol=1e-12)
    self.assertEqual(set(result.statistics), set(plain.statistics))
    for path, values in plain.statistics.items():
      self.assertAllClose(result.statistics[path], values, rtol=1e-9)
      # Each row counts once.
      self.assertAllClose(result.statistics[path].sums[0], [batch_size] * 4)

  def testABatchThatDividesIsNotTouched(self):
    batch = test_cells.Batch(12)
    results = [
      _Net(batch, num_micro_batches=4, pad_batches=pad).ComputeGradients(
        batch, 0
      )
      for pad in (False, True)
    ]
    self.assertAllEqual(results[0].loss, results[1].loss)

  def testMicroBatchSize(self):
    net = _Net(test_cells.Batch(10), micro_batch_size=4, pad_batches=True)
    self.assertEqual(net.plan.num_micro_batches, 3)

  def testWithoutItIsAnError(self):
    with self.assertRaisesRegex(
      ValueError, 'mini-batch 10 is not divisible.*pad_batches=True'
    ):
      _Net(test_cells.Batch(10), num_micro_batches=4)

  def testMoreMicroBatchesThanRows(self):
    with self.assertRaisesRegex(
      ValueError, 'num_micro_batches=11 is larger than the mini-batch 10'
    ):
      _Net(test_cells.Batch(10), num_micro_batches=11, pad_batches=True)

  def testALastCellThatWeighsNothing(self):
    with self.assertRaisesRegex(
      ValueError, "net/join does not read the field 'weights'"
    ):
      gpipe.GPipe.Params().Set(
        name='net', cells=_Cells()[:-1], pad_batches=True
      ).Instantiate()


if __name__ == '__main__':
  tf.test.main()
