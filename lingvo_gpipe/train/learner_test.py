"""Tests for learner."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map, weights
from lingvo_gpipe.train import learner, optimizers, schedules

NestedMap = nested_map.NestedMap


def setUpModule():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 3
  )


def _Spec(path, shape=(4,), trainable=True, collections=(), dtype=tf.float64):
  return weights.VariableSpec(
    path=path,
    shape=shape,
    dtype=dtype,
    init=weights.WeightInit.Gaussian(1.0),
    trainable=trainable,
    collections=collections,
    seed=1,
  )


def _Specs():
  return NestedMap(
    cells=[
      NestedMap(w=_Spec('net/a/w', collections=('l2',)), b=_Spec('net/a/b')),
      NestedMap(
        w=_Spec('net/b/w', (2, 3), collections=('l2',)),
        moving=_Spec('net/b/moving', trainable=False),
      ),
      NestedMap(w=_Spec('net/c/w', (5,))),
    ]
  )


def _Variables(specs, devices=('CPU:0', 'CPU:1', 'CPU:2')):
  variables = NestedMap(cells=[])
  for device, cell in zip(devices, specs.cells, strict=True):
    with tf.device(device):
      variables.cells.append(
        tf.nest.map_structure(lambda spec: spec.Create(), cell)
      )
  return variables


def _Gradients(specs, seed=0, scale=1.0):
  rng = np.random.RandomState(seed)
  return tf.nest.map_structure(
    lambda s: (
      tf.constant(scale * rng.randn(*s.shape), s.dtype) if s.trainable else None
    ),
    specs,
  )


def _Trainable(specs, tree):
  pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(tree), strict=True)
  return [np.array(x) for s, x in pairs if s.trainable]


def _Numpy(tree):
  return [np.array(x) for x in tf.nest.flatten(tree)]


def _Norm(arrays):
  return np.sqrt(sum(np.sum(a**2) for a in arrays))


def _Make(specs, variables, **params):
  made = learner.Learner.Params().Set(**params).Instantiate()
  made.InstantiateVariables(variables, specs)
  return made


def _Both(made):
  """Apply, eagerly and in a tf.function."""
  return made.Apply, tf.function(made.Apply)


class LearnerTest(tf.test.TestCase, parameterized.TestCase):
  def testUpdatesByScheduleAndOptimizer(self):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(
      specs,
      variables,
      learning_rate=0.5,
      lr_schedule=schedules.Exponential.Params().Set(
        decay_rate=0.5, decay_steps=1
      ),
      optimizer=optimizers.Momentum.Params().Set(momentum=0.9),
    )
    w = _Trainable(specs, variables)
    accum = [np.zeros_like(x) for x in w]
    frozen = variables.cells[1].moving.numpy()
    eager, graph = _Both(made)
    for step in range(4):
      gradients = _Gradients(specs, step)
      stats = (graph if step % 2 else eager)(
        variables, gradients, tf.constant(step, tf.int64)
      )
      g = _Trainable(specs, gradients)
      accum = [0.9 * a + x for a, x in zip(accum, g, strict=True)]
      w = [x - 0.5**step * 0.5 * a for x, a in zip(w, accum, strict=True)]
      for actual, expected in zip(_Trainable(specs, variables), w, strict=True):
        self.assertAllClose(actual, expected, rtol=1e-13, atol=1e-13)
      self.assertAllClose(stats.learning_rate, 0.5 * 0.5**step)
      self.assertAllClose(stats.grad_norm, _Norm(g), rtol=1e-13)
      self.assertFalse(stats.update_skipped)
      self.assertEqual(int(stats.num_skipped), 0)
    self.assertAllEqual(variables.cells[1].moving, frozen)
    self.assertEqual(int(made.slots['learner/num_updates']), 4)

  def testSlotsAreDeclaredThenCreatedOnTheirVariablesDevices(self):
    specs = _Specs()
    variables = _Variables(specs)
    made = (
      learner.Learner.Params()
      .Set(optimizer=optimizers.RMSProp.Params())
      .Instantiate()
    )
    declared = made.SlotSpecs(specs)
    made.InstantiateVariables(variables, specs)
    self.assertCountEqual(
      declared,
      [
        f'net/{v}/{s}'
        for v in ('a/w', 'a/b', 'b/w', 'c/w')
        for s in ('ms', 'mom')
      ],
    )
    self.assertCountEqual(
      made.slots, [*declared, 'learner/num_updates', 'learner/num_skipped']
    )
    for path, spec in declared.items():
      self.assertEqual(made.slots[path].shape, spec.shape)
    for cell, letter in enumerate('abc'):
      device = variables.cells[cell].w.device
      self.assertEqual(made.slots[f'net/{letter}/w/ms'].device, device)
      self.assertEndsWith(device, f'CPU:{cell}')

  @parameterized.parameters(True, False)
  def testEveryUpdateIsPlacedOnItsVariablesDevice(self, skip_nonfinite):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(
      specs,
      variables,
      optimizer=optimizers.Adam.Params(),
      clip_gradient_norm_to_value=1.0,
      skip_nonfinite=skip_nonfinite,
    )
    gradients = _Gradients(specs)
    step = tf.function(lambda: made.Apply(variables, gradients, 0))
    graph = step.get_concrete_function().graph.as_graph_def()
    nodes = list(graph.node)
    for function in graph.library.function:
      nodes += function.node_def
    kernels = [n.device for n in nodes if n.op == 'ResourceApplyAdam']
    for k, count in enumerate((2, 1, 1)):
      self.assertEqual(
        [d.endswith(f'CPU:{k}') for d in kernels].count(True), count
      )
    # Sums of squares are taken where the gradients are, too.
    sums = [n.device for n in nodes if n.op == 'L2Loss']
    self.assertEqual([d[-1] for d in sums], ['0', '0', '1', '2'])

  def testNormIsTheSameForAnyPlacement(self):
    """To the last bit, so that clipping does not depend on K."""
    specs = _Specs()
    norms = set()
    for devices in (
      ('CPU:0', 'CPU:0', 'CPU:0'),
      ('CPU:0', 'CPU:1', 'CPU:2'),
      ('CPU:1', 'CPU:0', 'CPU:1'),
    ):
      variables = _Variables(specs, devices)
      made = _Make(specs, variables)
      for apply in _Both(made):
        stats = apply(variables, _Gradients(specs), 0)
        norms.add(float(stats.grad_norm))
    self.assertLen(norms, 1)

  def testInterleavedDevicesKeepTheirGradients(self):
    """Clipping by variable, with variables of two devices in turn."""
    specs = _Specs()
    variables = _Variables(specs, ('CPU:1', 'CPU:0', 'CPU:1'))
    made = _Make(
      specs,
      variables,
      learning_rate=1.0,
      clip_gradient_single_norm_to_value=0.5,
    )
    for apply in _Both(made):
      before = _Trainable(specs, variables)
      gradients = _Gradients(specs)
      apply(variables, gradients, 0)
      after = _Trainable(specs, variables)
      for b, a, g in zip(
        before, after, _Trainable(specs, gradients), strict=True
      ):
        self.assertAllClose(b - a, g * min(1, 0.5 / _Norm([g])), rtol=1e-12)

  @parameterized.parameters(0.5, 1e3)
  def testClipsByGlobalNorm(self, value):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(
      specs, variables, learning_rate=1.0, clip_gradient_norm_to_value=value
    )
    before = _Trainable(specs, variables)
    gradients = _Gradients(specs)
    g = _Trainable(specs, gradients)
    stats = made.Apply(variables, gradients, 0)
    self.assertAllClose(stats.grad_norm, _Norm(g))  # Before clipping.
    for b, a, x in zip(before, _Trainable(specs, variables), g, strict=True):
      self.assertAllClose(b - a, x * min(1, value / _Norm(g)), rtol=1e-12)

  def testClippingOfZeroGradientsIsFinite(self):
    specs = _Specs()
    for clip in (
      'clip_gradient_norm_to_value',
      'clip_gradient_single_norm_to_value',
    ):
      variables = _Variables(specs)
      before = _Numpy(variables)
      made = _Make(specs, variables, **{clip: 1.0})
      made.Apply(variables, _Gradients(specs, scale=0.0), 0)
      self.assertAllEqual(
        np.concatenate([x.ravel() for x in _Numpy(variables)]),
        np.concatenate([x.ravel() for x in before]),
      )

  def testL2PullsOnItsCollectionOnly(self):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(specs, variables, learning_rate=1.0, l2_regularizer_weight=0.1)
    before = _Numpy(variables.cells[0]) + _Numpy(variables.cells[1].w)
    stats = made.Apply(variables, _Gradients(specs, scale=0.0), 0)
    self.assertAllClose(variables.cells[0].b, before[0])
    self.assertAllClose(variables.cells[0].w, 0.9 * before[1])
    self.assertAllClose(variables.cells[1].w, 0.9 * before[2])
    self.assertAllClose(stats.grad_norm, 0.1 * _Norm(before[1:]))

  def testL2WithoutItsCollectionIsAnError(self):
    specs = NestedMap(w=_Spec('w'))
    made = learner.Learner.Params().Set(l2_regularizer_weight=0.1).Instantiate()
    variables = NestedMap(w=specs.w.Create())
    with self.assertRaisesRegex(ValueError, "no trainable variable .*'l2'"):
      made.InstantiateVariables(variables, specs)

  @parameterized.parameters(np.nan, np.inf, -np.inf)
  def testNonFiniteUpdateChangesNothing(self, bad):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(
      specs,
      variables,
      optimizer=optimizers.Adam.Params(),
      l2_regularizer_weight=0.1,
      clip_gradient_norm_to_value=1.0,
    )
    made.Apply(variables, _Gradients(specs), 0)
    gradients = _Gradients(specs)
    gradients.cells[1].w *= tf.constant([[1, 1, 1], [1, 1, bad]], tf.float64)
    state = {**made.slots}
    skipped = state.pop('learner/num_skipped')
    for count, apply in enumerate(_Both(made), start=1):
      before = _Numpy([variables, state])
      stats = apply(variables, gradients, 1)
      self.assertTrue(stats.update_skipped)
      self.assertFalse(np.isfinite(stats.grad_norm))
      for b, a in zip(before, _Numpy([variables, state]), strict=True):
        self.assertAllEqual(b, a)
      self.assertEqual(int(stats.num_skipped), count)
      self.assertEqual(int(skipped), count)
      stats = apply(variables, _Gradients(specs), 2)
      self.assertFalse(stats.update_skipped)
      self.assertEqual(int(stats.num_skipped), count)
    self.assertEqual(int(state['learner/num_updates']), 3)

  def testAdamDoesNotCountSkippedSteps(self):
    specs = _Specs()
    results = []
    for skips in (0, 3):
      variables = _Variables(specs)
      made = _Make(specs, variables, optimizer=optimizers.Adam.Params())
      for _ in range(skips):
        made.Apply(variables, _Gradients(specs, scale=np.nan), 0)
      made.Apply(variables, _Gradients(specs), skips)
      results.append(_Numpy(variables))
    for a, b in zip(*results, strict=True):
      self.assertAllEqual(a, b)

  def testNonFiniteUpdatesMayBeMade(self):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(specs, variables, skip_nonfinite=False)
    stats = made.Apply(variables, _Gradients(specs, scale=np.nan), 0)
    self.assertFalse(stats.update_skipped)
    self.assertTrue(np.isnan(variables.cells[0].w).all())

  def testGradientsMayBeMissingOrSparse(self):
    specs = _Specs()
    variables = _Variables(specs)
    made = _Make(specs, variables, learning_rate=1.0)
    before = _Numpy(variables)
    gradients = tf.nest.map_structure(lambda s: None, specs)
    gradients.cells[2].w = tf.IndexedSlices(
      tf.constant([3.0, 4.0], tf.float64), tf.constant([1, 1]), tf.constant([5])
    )
    with self.assertLogs(level='WARNING') as logs:
      stats = made.Apply(variables, gradients, 0)
    self.assertIn('3 trainable variables have no gradient', logs.output[0])
    self.assertAllClose(stats.grad_norm, 7.0)
    after = _Numpy(variables)
    for b, a in zip(before[:-1], after[:-1], strict=True):
      self.assertAllEqual(b, a)
    self.assertAllClose(before[-1] - after[-1], [0, 7, 0, 0, 0])

  def testHalfPrecisionNormIsAddedUpInFloat32(self):
    specs = NestedMap(w=_Spec('w', (4096,), dtype=tf.bfloat16))
    variables = NestedMap(w=specs.w.Create())
    made = _Make(specs, variables)
    stats = made.Apply(variables, NestedMap(w=tf.ones(4096, tf.bfloat16)), 0)
    self.assertAllClose(stats.grad_norm, 64.0)

  def testSpecsAreOptional(self):
    with tf.device('CPU:1'):
      variables = NestedMap(w=_Spec('net/w').Create())
    made = (
      learner.Learner.Params()
      .Set(optimizer=optimizers.Momentum.Params())
      .Instantiate()
    )
    made.InstantiateVariables(variables)
    self.assertIn('net/w/accum', made.slots)

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, 'not both'):
      learner.Learner.Params().Set(
        clip_gradient_norm_to_value=1.0,
        clip_gradient_single_norm_to_value=1.0,
      ).Instantiate()
    with self.assertRaisesRegex(ValueError, 'must not be negative'):
      learner.Learner.Params().Set(learning_rate=-1.0).Instantiate()
    specs = _Specs()
    variables = _Variables(specs)
    made = learner.Learner.Params().Instantiate()
    with self.assertRaisesRegex(RuntimeError, 'no slots yet'):
      made.Apply(variables, _Gradients(specs), 0)
    made.InstantiateVariables(variables, specs)
    with self.assertRaisesRegex(RuntimeError, 'exist already'):
      made.InstantiateVariables(variables, specs)
    nothing = tf.nest.map_structure(lambda s: None, specs)
    with self.assertRaisesRegex(ValueError, 'no variable has a gradient'):
      made.Apply(variables, nothing, 0)
    nothing.cells[1].moving = tf.ones(4, tf.float64)
    with self.assertRaisesRegex(ValueError, 'net/b/moving.*not trainable'):
      made.Apply(variables, nothing, 0)
    twice = NestedMap(a=_Spec('net/w'), b=_Spec('net/w'))
    with self.assertRaisesRegex(ValueError, "two variables.*'net/w'"):
      learner.Learner.Params().Instantiate().InstantiateVariables(
        tf.nest.map_structure(lambda s: s.Create(), twice), twice
      )


if __name__ == '__main__':
  tf.test.main()
