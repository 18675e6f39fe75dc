"""Tests for optimizers."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import weights
from lingvo_gpipe.train import optimizers
from lingvo_gpipe.train import slots as slots_lib

_SHAPE = (3, 2)


def setUpModule():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
  )


def _Spec(dtype=tf.float64):
  return weights.VariableSpec(
    path='net/w',
    shape=_SHAPE,
    dtype=dtype,
    init=weights.WeightInit.Gaussian(1.0),
    trainable=True,
    collections=(),
    seed=1,
  )


def _Create(optimizer, spec):
  variable = spec.Create()
  slots = {
    name: slots_lib.CreateSlot(slot_spec, variable)
    for name, slot_spec in optimizer.SlotSpecs(spec).items()
  }
  return variable, slots


# The formulas of the docstrings in NumPy: (w, slots, g, lr, t) -> w.


def _Sgd(w, s, g, lr, t):
  return w - lr * g


def _Momentum(w, s, g, lr, t):
  s['accum'] = 0.8 * s['accum'] + g
  return w - lr * s['accum']


def _Nesterov(w, s, g, lr, t):
  s['accum'] = 0.8 * s['accum'] + g
  return w - lr * (g + 0.8 * s['accum'])


def _RmsProp(w, s, g, lr, t):
  s['ms'] = 0.7 * s['ms'] + 0.3 * g**2
  s['mom'] = 0.8 * s['mom'] + lr * g / np.sqrt(s['ms'] + 0.1)
  return w - s['mom']


def _Adam(w, s, g, lr, t):
  s['m'] = 0.8 * s['m'] + 0.2 * g
  s['v'] = 0.95 * s['v'] + 0.05 * g**2
  scale = np.sqrt(1 - 0.95**t) / (1 - 0.8**t)
  return w - lr * scale * s['m'] / (np.sqrt(s['v']) + 1e-3)


_CASES = (
  ('sgd', optimizers.SGD.Params(), {}, _Sgd),
  (
    'momentum',
    optimizers.Momentum.Params().Set(momentum=0.8),
    {'accum': 0.0},
    _Momentum,
  ),
  (
    'nesterov',
    optimizers.Momentum.Params().Set(momentum=0.8, use_nesterov=True),
    {'accum': 0.0},
    _Nesterov,
  ),
  (
    'rmsprop',
    optimizers.RMSProp.Params().Set(decay=0.7, momentum=0.8, epsilon=0.1),
    {'ms': 1.0, 'mom': 0.0},
    _RmsProp,
  ),
  (
    'adam',
    optimizers.Adam.Params().Set(beta1=0.8, beta2=0.95, epsilon=1e-3),
    {'m': 0.0, 'v': 0.0},
    _Adam,
  ),
)


class OptimizersTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.named_parameters(*_CASES)
  def testFollowsTheFormula(self, params, initial, reference):
    optimizer = params.Instantiate()
    variable, slots = _Create(optimizer, _Spec())
    w = variable.numpy()
    s = {name: np.full(_SHAPE, value) for name, value in initial.items()}
    in_graph = tf.function(
      lambda g, lr, t: optimizer.Apply(variable, g, slots, lr, t)
    )
    rng = np.random.RandomState(0)
    for step in range(6):
      g, lr = rng.randn(*_SHAPE), 0.3 / (1 + step)
      if step % 2:
        in_graph(tf.constant(g), tf.constant(lr, tf.float64), tf.constant(step))
      else:
        optimizer.Apply(variable, tf.constant(g), slots, lr, step)
      w = reference(w, s, g, lr, step + 1)
      self.assertAllClose(variable, w, rtol=1e-13, atol=1e-13)
      self.assertCountEqual(slots, s)
      for name, slot in slots.items():
        self.assertAllClose(slot, s[name], rtol=1e-13, atol=1e-13)

  @parameterized.named_parameters(*_CASES)
  def testSlotsAndUpdatesStayOnTheVariablesDevice(
    self, params, initial, reference
  ):
    del reference
    optimizer = params.Instantiate()
    with tf.device('CPU:1'):
      variable, slots = _Create(optimizer, _Spec(tf.float32))
    gradient = tf.ones(_SHAPE)
    for slot in slots.values():
      self.assertEndsWith(slot.device, 'CPU:1')

    @tf.function
    def _Update():
      with tf.device('CPU:0'):  # What surrounds the update does not matter.
        optimizer.Apply(variable, gradient, slots, 0.1, 0)

    kernels = [
      node
      for node in _Update.get_concrete_function().graph.as_graph_def().node
      if node.op.startswith('ResourceApply')
    ]
    self.assertLen(kernels, 1)
    self.assertEndsWith(kernels[0].device, 'CPU:1')
    before = variable.numpy()
    _Update()
    self.assertNotAllEqual(variable, before)

  def testSlotSpecsCountMemoryOfAnySize(self):
    spec = weights.VariableSpec(
      path='net/giant',
      shape=(10**6, 10**6),
      dtype=tf.float32,
      init=weights.WeightInit.Constant(0.0),
      trainable=True,
      collections=('l2',),
      seed=1,
    )
    slots = optimizers.RMSProp.Params().Instantiate().SlotSpecs(spec)
    self.assertEqual(
      [s.path for s in slots.values()], ['net/giant/ms', 'net/giant/mom']
    )
    # Table 1 of the paper: 12 bytes per parameter.
    total = spec.num_bytes + sum(s.num_bytes for s in slots.values())
    self.assertEqual(total, 12 * 10**12)
    self.assertFalse(any(s.trainable or s.collections for s in slots.values()))

  @parameterized.parameters(tf.bfloat16, tf.float16)
  def testHalfPrecisionVariables(self, dtype):
    for case in _CASES:
      optimizer = case[1].Instantiate()
      variable, slots = _Create(optimizer, _Spec(dtype))
      before = tf.cast(variable, tf.float32).numpy()
      optimizer.Apply(
        variable, tf.ones(_SHAPE, dtype), slots, tf.constant(0.5), 0
      )
      after = tf.cast(variable, tf.float32).numpy()
      self.assertAllInRange(before - after, 0.1, 1.1)

  def testRmsPropsFirstStepIsSmall(self):
    """With the default initial mean square of 1 it is about lr / sqrt(2)."""
    optimizer = optimizers.RMSProp.Params().Set(epsilon=1.0).Instantiate()
    variable, slots = _Create(optimizer, _Spec())
    before = variable.numpy()
    optimizer.Apply(
      variable, tf.ones(_SHAPE, tf.float64), slots, tf.constant(1.0), 0
    )
    self.assertAllClose(before - variable, np.full(_SHAPE, 0.5**0.5))


if __name__ == '__main__':
  tf.test.main()
