"""Tests of rematerialize: a stage's gradients from its inputs alone."""

import tensorflow as tf

from lingvo_gpipe.gpipe import micro_batch, rematerialize, stage, test_cells

_STEP = {'global_step': 3, 'micro_batch_index': 2}


def _Stage(index, start, end):
  params = test_cells.Cells(keep_prob=0.6)[start:end]
  cells = [p.Set(dtype=tf.float64).Instantiate() for p in params]
  for cell in cells:
    cell.InstantiateVariables()
  return stage.Stage(index, start, tuple(cells), '')


def _ThetaAndMask(piece):
  theta = [cell.theta for cell in piece.cells]
  specs = tf.nest.flatten([cell.VariableSpecs() for cell in piece.cells])
  return theta, [spec.trainable for spec in specs]


def _Middle(piece, inputs, output_gradients, batch):
  """The gradients of sum(outputs * output_gradients) + aux, by one tape."""
  theta, trainable = _ThetaAndMask(piece)
  sources = [
    w for w, t in zip(tf.nest.flatten(theta), trainable, strict=True) if t
  ]
  sources += rematerialize.FloatLeaves(inputs)
  with tf.GradientTape() as tape:
    tape.watch(sources)
    forward = piece.FProp(theta, inputs, batch, do_eval=False, **_STEP)
    leaves = rematerialize.FloatLeaves(forward.outputs)
    target = sum(
      tf.reduce_sum(leaf * g)
      for leaf, g in zip(leaves, output_gradients, strict=True)
    ) + sum(forward.aux_losses.values())
  return forward, tape.gradient(target, sources)


class RematerializeTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._batch = test_cells.Batch(batch_size=5)

  def _ForkOutputs(self):
    fork = _Stage(0, 2, 3)
    theta, unused_trainable = _ThetaAndMask(fork)
    return fork.FProp(
      theta, self._batch.inputs, self._batch, do_eval=False, **_STEP
    ).outputs

  def testAMiddleStageWithIntegersNoneDropoutAndAuxLoss(self):
    carry = _Stage(1, 3, 4)
    inputs = self._ForkOutputs()
    output_gradients = [
      tf.random.stateless_normal([5, 4], (i, 0), dtype=tf.float64)
      for i in range(2)
    ]
    forward, expected = _Middle(carry, inputs, output_gradients, self._batch)
    theta, trainable = _ThetaAndMask(carry)
    result = rematerialize.ForwardAndBackward(
      carry, theta, trainable, inputs, self._batch, output_gradients, **_STEP
    )
    self.assertAllEqual(result.forward.outputs.x, forward.outputs.x)
    self.assertAllClose([*result.weights, *result.inputs], expected, rtol=1e-12)
    # Two weights; x and skip, but not the ids.
    self.assertLen(result.weights, 2)
    self.assertLen(result.inputs, 2)

  def testTheLastStageStartsFromItsLoss(self):
    last = _Stage(1, 4, 6)
    inputs = self._ForkOutputs()
    theta, trainable = _ThetaAndMask(last)
    result = rematerialize.ForwardAndBackward(
      last, theta, trainable, inputs, self._batch, None, **_STEP
    )
    sources = tf.nest.flatten(theta)
    with tf.GradientTape() as tape:
      tape.watch(sources)
      forward = last.FProp(theta, inputs, self._batch, do_eval=False, **_STEP)
    expected = tape.gradient(forward.outputs.loss.total, sources)
    self.assertAllClose(result.weights, expected, rtol=1e-12)

  def testTheFirstStageHasNoGradientsOfData(self):
    first = _Stage(0, 0, 2)
    theta, trainable = _ThetaAndMask(first)
    result = rematerialize.ForwardAndBackward(
      first,
      theta,
      trainable,
      self._batch.inputs,
      self._batch,
      [tf.ones([5, 4], tf.float64)],
      **_STEP,
    )
    self.assertEmpty(result.inputs)
    self.assertLen(result.weights, 3)
    self.assertEqual(list(result.forward.statistics), ['norm'])

  def testUnusedWeightsHaveZeroGradients(self):
    class _Unused(test_cells.Linear):
      def FProp(self, theta, inputs):
        return 2.0 * inputs

    cell = _Unused.Params().Set(
      name='unused', input_dim=4, output_dim=4, dtype=tf.float64
    )
    cell = cell.Instantiate()
    cell.InstantiateVariables()
    piece = stage.Stage(1, 0, (cell,), '')
    theta, trainable = _ThetaAndMask(piece)
    result = rematerialize.ForwardAndBackward(
      piece,
      theta,
      trainable,
      self._batch.inputs,
      self._batch,
      [tf.ones([5, 4], tf.float64)],
      **_STEP,
    )
    self.assertAllEqual(result.weights[1], tf.zeros([4, 4]))
    self.assertAllEqual(result.inputs[0], tf.fill([5, 4], 2.0))

  def testFloatLeaves(self):
    leaves = rematerialize.FloatLeaves(self._ForkOutputs())
    self.assertEqual(
      micro_batch.Specs(leaves), [tf.TensorSpec([5, 4], tf.float64)] * 2
    )


if __name__ == '__main__':
  tf.test.main()
