"""Tests of micro_batch."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import metrics, nested_map
from lingvo_gpipe.gpipe import micro_batch

NestedMap = nested_map.NestedMap


class MicroBatchTest(parameterized.TestCase, tf.test.TestCase):
  def testFlattenLeavesNoneInItsPlace(self):
    nest = NestedMap(a=None, b=(tf.constant(1), None), c=[tf.constant(2.0)])
    leaves, pack = micro_batch.Flatten(nest)
    self.assertLen(leaves, 2)
    packed = pack([10, 20])
    self.assertEqual(packed, NestedMap(a=None, b=(10, None), c=[20]))
    self.assertIsInstance(packed, NestedMap)

  def testSplitKeepsTheOrderOfRows(self):
    batch = NestedMap(x=tf.reshape(tf.range(12), [6, 2]), nothing=None)
    split = micro_batch.Split(batch, 3)
    self.assertEqual(split.x.shape, [3, 2, 2])
    self.assertIsNone(split.nothing)
    self.assertAllEqual(micro_batch.At(split, 1).x, [[4, 5], [6, 7]])
    rows = tf.concat([micro_batch.At(split, i).x for i in range(3)], 0)
    self.assertAllEqual(rows, batch.x)

  def testSpecsOfAMicroBatch(self):
    batch = NestedMap(x=tf.zeros([6, 2]), y=tf.zeros([6], tf.int32), z=None)
    spec = micro_batch.MicroSpecs(micro_batch.Specs(batch), 3)
    self.assertEqual(spec.x, tf.TensorSpec([2, 2], tf.float32))
    self.assertEqual(spec.y, tf.TensorSpec([2], tf.int32))
    self.assertIsNone(spec.z)

  def testBatchSize(self):
    batch = NestedMap(x=tf.zeros([6, 2]), y=(tf.zeros([6]), None))
    self.assertEqual(micro_batch.BatchSize(batch), 6)

  @parameterized.parameters(
    (NestedMap(x=tf.zeros([6]), y=tf.zeros([5])), r'x: 6, y: 5'),
    (NestedMap(x=(tf.zeros([6]), tf.zeros([]))), r'x\[1\] has shape \(\)'),
    (NestedMap(x=None), 'holds no tensor'),
    (
      NestedMap(a=NestedMap(b=tf.TensorSpec([None, 2]))),
      r'the batch size of a\.b is not static',
    ),
  )
  def testBatchesWithoutOneSize(self, batch, message):
    with self.assertRaisesRegex(ValueError, message):
      micro_batch.BatchSize(batch)

  def testWhatIsSummedAndWhatIsConcatenated(self):
    outputs = NestedMap(
      predictions=tf.zeros([2]),
      loss=metrics.WeightedSum(tf.zeros([]), tf.zeros([])),
      nothing=None,
      pair=(tf.zeros([2]), metrics.WeightedSum(tf.zeros([]), tf.zeros([]))),
    )
    # By sorted keys: loss, nothing, pair, predictions.
    expected = [True, True, False, True, True, False]
    self.assertEqual(micro_batch.IsSum(outputs), expected)
    leaves, unused_pack = micro_batch.Flatten(outputs)
    self.assertLen(leaves, len(expected))

  def testNumbersBecomeTensors(self):
    nest = micro_batch.ToTensors((1, None, tf.constant(2.0)))
    self.assertEqual(nest[0].dtype, tf.int32)
    self.assertIsNone(nest[1])


if __name__ == '__main__':
  tf.test.main()
