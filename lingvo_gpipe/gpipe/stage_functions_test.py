"""Tests of stage_functions: one stage's gradients under every policy."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer
from lingvo_gpipe.gpipe import (
  micro_batch,
  segment,
  stage,
  stage_functions,
  test_cells,
)

_STEP, _INDEX = 3, 2
_POLICIES = ('none', 'partition', 'cell')


def _Stage(index, start, end):
  params = test_cells.Cells(keep_prob=0.6)[start:end]
  return _StageOf(index, start, params)


def _StageOf(index, start, params):
  cells = [p.Set(dtype=tf.float64).Instantiate() for p in params]
  for cell in cells:
    cell.InstantiateVariables()
  return stage.Stage(index, start, tuple(cells), '')


def _Theta(piece):
  return stage.Theta([cell.theta for cell in piece.cells], {})


def _Weights(gradients):
  """Gradients by weights, in order."""
  return [g for _, g in sorted(gradients.weights, key=lambda pair: pair[0])]


def _FProp(piece, inputs, batch):
  return piece.FProp(
    _Theta(piece),
    stage.Carried(inputs, {}),
    batch,
    do_eval=False,
    global_step=_STEP,
    micro_batch_index=_INDEX,
  )


def _Functions(piece, inputs, batch, policy, num_stages=3, **kwargs):
  return stage_functions.StageFunctions(
    piece,
    micro_batch.Specs(stage.Carried(inputs, {})),
    micro_batch.Specs(batch),
    policy=policy,
    num_stages=num_stages,
    **kwargs,
  )


def _Arguments(piece, inputs, batch):
  return stage_functions.Arguments(
    [tf.constant(_STEP, tf.int64), tf.constant(_INDEX, tf.int64)],
    batch,
    stage.Carried(inputs, {}),
    _Theta(piece),
  )


def _ByTape(piece, inputs, output_gradients, batch):
  """Gradients of sum(outputs * output_gradients) + aux, by one tape."""
  theta = _Theta(piece)
  specs = tf.nest.flatten([cell.VariableSpecs() for cell in piece.cells])
  weights = [
    w
    for w, spec in zip(tf.nest.flatten(theta.cells), specs, strict=True)
    if spec.trainable
  ]
  received = segment.Floats(micro_batch.Flatten(inputs)[0])
  with tf.GradientTape() as tape:
    tape.watch([*weights, *received])
    forward = piece.FProp(
      theta,
      stage.Carried(inputs, {}),
      batch,
      do_eval=False,
      global_step=_STEP,
      micro_batch_index=_INDEX,
    )
    if output_gradients is None:
      target = segment.Objective(forward)
    else:
      leaves = micro_batch.Flatten(forward.carried.outputs)[0]
      target = sum(
        tf.reduce_sum(x * g)
        for x, g in zip(segment.Floats(leaves), output_gradients, strict=True)
      ) + sum(forward.aux_losses.values())
  return forward, tape.gradient(target, [weights, received])


class StageFunctionsTest(parameterized.TestCase, tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._batch = test_cells.Batch(batch_size=5)

  def _ForkOutputs(self):
    return _FProp(
      _Stage(0, 2, 3), self._batch.inputs, self._batch
    ).carried.outputs

  @parameterized.product(policy=_POLICIES, jit_compile=(False, True))
  def testAMiddleStage(self, policy, jit_compile):
    """Integers, None, dropout and an auxiliary loss pass through two cells."""
    # XLA draws other random numbers.
    carry = test_cells.Cells(keep_prob=1.0 if jit_compile else 0.6)[3]
    piece = _StageOf(1, 3, [carry, carry.Copy().Set(name='carry_2')])
    inputs = self._ForkOutputs()
    dys = [
      tf.random.stateless_normal([5, 4], (i, 0), dtype=tf.float64)
      for i in range(2)
    ]
    expected, (weights, received) = _ByTape(piece, inputs, dys, self._batch)
    functions = _Functions(
      piece, inputs, self._batch, policy, jit_compile=jit_compile
    )
    arguments = _Arguments(piece, inputs, self._batch)
    forward = functions.Forward(arguments)
    tf.nest.map_structure(
      lambda a, e: self.assertAllClose(a, e, rtol=1e-12, atol=1e-12),
      micro_batch.Flatten(forward.outputs)[0],
      micro_batch.Flatten(expected)[0],
    )
    self.assertEqual(micro_batch.Specs(forward.kept), functions.kept)
    residuals = functions.Recompute(arguments, forward.kept)
    gradients = functions.Backward(
      arguments, forward.kept, residuals, {None: dys}
    )
    close = {'rtol': 1e-12, 'atol': 1e-12}
    self.assertAllClose(_Weights(gradients), weights, **close)
    # x and skip, but not the ids.
    self.assertAllClose(gradients.received[None], received, **close)

  @parameterized.parameters(*_POLICIES)
  def testTheLastStageGoesBackwardAtOnce(self, policy):
    piece = _Stage(2, 4, 6)
    inputs = self._ForkOutputs()
    unused, (weights, received) = _ByTape(piece, inputs, None, self._batch)
    functions = _Functions(piece, inputs, self._batch, policy)
    arguments = _Arguments(piece, inputs, self._batch)
    forward = functions.Forward(arguments, backward_follows=True)
    gradients = functions.Backward(
      arguments, forward.kept, forward.residuals, {}
    )
    self.assertAllClose(_Weights(gradients), weights, rtol=1e-12)
    self.assertAllClose(gradients.received[None], received, rtol=1e-12)

  @parameterized.parameters(*_POLICIES)
  def testTheFirstStageHasNoGradientsOfData(self, policy):
    piece = _Stage(0, 0, 2)
    functions = _Functions(piece, self._batch.inputs, self._batch, policy)
    arguments = _Arguments(piece, self._batch.inputs, self._batch)
    forward = functions.Forward(arguments)
    gradients = functions.Backward(
      arguments,
      forward.kept,
      functions.Recompute(arguments, forward.kept),
      {None: [tf.ones([5, 4], tf.float64)]},
    )
    self.assertEqual(gradients.received, {})
    self.assertLen(gradients.weights, 3)
    self.assertEqual(list(forward.outputs.statistics), ['norm'])

  def testWhatEachPolicyKeeps(self):
    linear = test_cells.Cells()[0]
    piece = _StageOf(
      1, 0, [linear.Copy().Set(name=f'linear_{i}') for i in range(3)]
    )
    kept = {}
    for policy in _POLICIES:
      functions = _Functions(piece, self._batch.inputs, self._batch, policy)
      kept[policy] = len(functions.kept)
      self.assertEqual(functions.recomputes, policy != 'none')
    # Three tanh; nothing; the inputs of the second and third cell.
    self.assertEqual(kept, {'none': 3, 'partition': 0, 'cell': 2})

  def testUnusedWeightsHaveNoGradient(self):
    class _Unused(test_cells.Linear):
      def FProp(self, theta, inputs):
        return 2.0 * inputs

    params = _Unused.Params().Set(name='unused', input_dim=4, output_dim=4)
    piece = _StageOf(1, 0, [params])
    functions = _Functions(piece, self._batch.inputs, self._batch, 'none')
    gradients = functions.Backward(
      _Arguments(piece, self._batch.inputs, self._batch),
      [],
      [],
      {None: [tf.ones([5, 4], tf.float64)]},
    )
    self.assertEqual(gradients.weights, [])
    self.assertAllEqual(gradients.received[None][0], tf.fill([5, 4], 2.0))

  def testLookedUpRowsStaySparse(self):
    class _Lookup(test_cells.Linear):
      def FProp(self, theta, inputs):
        return tf.gather(theta.w, inputs)

    params = _Lookup.Params().Set(name='lookup', input_dim=9, output_dim=4)
    piece = _StageOf(0, 0, [params])
    ids = tf.constant([1, 1, 8, 0, 3])
    functions = _Functions(piece, ids, self._batch, 'none')
    gradients = functions.Backward(
      _Arguments(piece, ids, self._batch),
      [],
      [],
      {None: [tf.ones([5, 4], tf.float64)]},
    )
    ((unused_i, w),) = gradients.weights
    self.assertIsInstance(w, tf.IndexedSlices)
    self.assertAllEqual(w.indices, ids)

  def testAssertionsOfACellAreNotLost(self):
    class _Picky(base_layer.BaseLayer):
      def FProp(self, theta, inputs):
        tf.debugging.assert_less(inputs, tf.constant(9.0, inputs.dtype))
        return inputs

    piece = _StageOf(1, 0, [_Picky.Params().Set(name='picky')])
    for policy in _POLICIES:
      functions = _Functions(piece, self._batch.inputs, self._batch, policy)
      functions.Forward(_Arguments(piece, self._batch.inputs, self._batch))
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'picky'):
        functions.Forward(
          _Arguments(piece, 100.0 + self._batch.inputs, self._batch)
        )


if __name__ == '__main__':
  tf.test.main()
