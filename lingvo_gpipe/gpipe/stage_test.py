"""Tests of stage."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import micro_batch, stage, test_cells

NestedMap = nested_map.NestedMap


def _Stage(start, end, device=''):
  cells = [p.Instantiate() for p in test_cells.Cells()[start:end]]
  for cell in cells:
    cell.InstantiateVariables()
  return stage.Stage(1, start, tuple(cells), device)


def _FProp(piece, inputs, batch, do_eval=False):
  return piece.FProp(
    stage.Theta([cell.theta for cell in piece.cells], {}),
    stage.Carried(inputs, {}),
    batch,
    do_eval=do_eval,
    global_step=0,
    micro_batch_index=0,
  )


class StageTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._batch = test_cells.Batch(batch_size=3, dtype=tf.float32)

  def testCellsOneAfterTheOther(self):
    piece = _Stage(0, 6)
    x = self._batch.inputs
    for cell in piece.cells:
      x = cell(x, self._batch) if cell.BATCH_FIELDS else cell(x)
    evaluated = _FProp(piece, self._batch.inputs, self._batch, do_eval=True)
    tf.nest.map_structure(self.assertAllClose, evaluated.carried.outputs, x)

  def testReportsOfTrainingOnly(self):
    piece = _Stage(0, 6)
    trained = _FProp(piece, self._batch.inputs, self._batch)
    self.assertEqual(list(trained.statistics), ['norm'])
    self.assertEqual(list(trained.aux_losses), ['carry/size'])
    evaluated = _FProp(piece, self._batch.inputs, self._batch, do_eval=True)
    self.assertEqual(evaluated[1:], ({}, {}, {}))

  def testBatchFieldsAreThoseItsCellsAskFor(self):
    self.assertEqual(_Stage(0, 3).batch_fields, ())
    self.assertEqual(_Stage(3, 6).batch_fields, ('labels', 'weights'))

  def testTraceFindsTheSpecsWithoutRunning(self):
    piece = _Stage(0, 4)
    spec = piece.Trace(
      micro_batch.Specs(stage.Carried(self._batch.inputs, {})),
      micro_batch.Specs(self._batch),
      do_eval=False,
    )
    outputs = _FProp(piece, self._batch.inputs, self._batch)
    for traced, run in zip(spec, outputs, strict=True):
      tf.nest.map_structure(self.assertEqual, traced, micro_batch.Specs(run))
    self.assertIsNone(spec.carried.outputs.nothing)
    self.assertEqual(spec.carried.outputs.ids.dtype, tf.int32)

  def testOpsArePlacedOnItsDeviceAndNamedByCell(self):
    piece = _Stage(1, 2, device='/job:worker/replica:0/task:3/device:CPU:0')
    with tf.Graph().as_default() as graph:
      theta = piece.AbstractTheta({})
      before = len(graph.get_operations())
      piece.FProp(
        theta,
        stage.Carried(tf.ones([3, 4]), {}),
        NestedMap(),
        do_eval=True,
        global_step=0,
        micro_batch_index=0,
      )
      ops = graph.get_operations()[before + 1 :]
    self.assertNotEmpty(ops)
    for op in ops:
      self.assertEqual(op.device, piece.device)
      self.assertStartsWith(op.name, 'partition_1/norm/')

  def testAnErrorGainsCellPartitionAndInputs(self):
    piece = _Stage(0, 2, device='/device:CPU:0')
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      _FProp(piece, tf.ones([3, 5]), self._batch)
    self.assertRegex(
      caught.exception.__notes__[0],
      r'in cell 0 \(linear, Linear\) of partition 1 on /device:CPU:0, given '
      r'TensorSpec\(shape=\(3, 5\)',
    )


if __name__ == '__main__':
  tf.test.main()
