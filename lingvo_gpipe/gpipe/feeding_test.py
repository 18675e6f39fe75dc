"""Tests of feeding."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import division, feeding, placement, stage, test_cells

NestedMap = nested_map.NestedMap


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class FeedingTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._cells = [p.Instantiate() for p in test_cells.Cells()]
    self._feeding = feeding.Feeding(
      'net', self._cells, 'inputs', 'weights', tf.float64
    )
    self._batch = NestedMap(
      inputs=NestedMap(x=tf.ones([5, 3], tf.float32), ids=tf.range(5)),
      labels=tf.range(5),
      weights=tf.ones([5]),
    )

  def testInputs(self):
    inputs = self._feeding.Inputs(self._batch)
    self.assertEqual(inputs.x.dtype, tf.float64)
    self.assertEqual(inputs.ids.dtype, tf.int32)
    specs = self._feeding.FirstSpecs(
      NestedMap(inputs=tf.TensorSpec([2, 3], tf.float32))
    )
    self.assertEqual(specs.carried.outputs, tf.TensorSpec([2, 3], tf.float64))

  def testMicroBatchesAreOnTheDeviceOfTheStage(self):
    device = '/device:CPU:1'
    divided = division.Division(
      batch_size=5, num_replicas=1, num_micro_batches=2
    )
    piece = stage.Stage(
      1, 0, tuple(self._cells), device, padded_from=divided.padded_from
    )
    self.assertEqual(piece.batch_fields, ('labels', 'weights'))
    fields = self._feeding.Fields(piece, divided, self._batch)
    self.assertAllEqual(fields.labels, [[0, 1, 2], [3, 4, 4]])
    # The row that only fills up counts for nothing.
    self.assertAllEqual(fields.weights, [[1, 1, 1], [1, 1, 0]])
    inputs = self._feeding.FirstInputs(piece, divided, self._batch)
    self.assertEqual(inputs.x.shape, [2, 3, 3])
    for tensor in (*fields.values(), *inputs.values()):
      self.assertEndsWith(tensor.device, device)

  def testWhatIsMissing(self):
    with self.assertRaisesRegex(
      ValueError, r"net: .* no field 'inputs' .* has \['x'\] \(param"
    ):
      self._feeding.Inputs(NestedMap(x=tf.ones([1])))
    del self._batch['labels']
    with self.assertRaisesRegex(
      ValueError, 'asks for the batch fields labels .* has inputs, weights'
    ):
      self._feeding.CheckFields(self._batch)


if __name__ == '__main__':
  tf.test.main()
