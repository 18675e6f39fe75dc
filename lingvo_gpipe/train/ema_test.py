"""Tests for ema."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, nested_map, weights
from lingvo_gpipe.train import ema

NestedMap = nested_map.NestedMap


def setUpModule():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
  )


class _Scale(base_layer.BaseLayer):
  """w * x + moving, with a counter that cannot be averaged."""

  def __init__(self, params):
    super().__init__(params)
    ones = base_layer.WeightInit.Constant(1.0)
    self.CreateVariable('w', base_layer.WeightParams((2,), ones))
    self.CreateVariable(
      'moving', base_layer.WeightParams((2,), ones), trainable=False
    )
    self.CreateVariable(
      'count',
      base_layer.WeightParams(
        (), base_layer.WeightInit.Constant(1), dtype=tf.int64
      ),
      trainable=False,
    )

  def FProp(self, theta, x):
    return theta.w * x + theta.moving


def _Layer():
  layer = _Scale.Params().Set(name='net', dtype=tf.float64).Instantiate()
  with tf.device('CPU:1'):
    layer.InstantiateVariables()
  return layer


def _Average(layer, **params):
  average = ema.ExponentialMovingAverage.Params().Set(**params).Instantiate()
  average.InstantiateVariables(layer.vars, layer.VariableSpecs())
  return average


class EmaTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(True, False)
  def testFollowsTheFormula(self, ramp):
    layer = _Layer()
    average = _Average(layer, decay=0.5, ramp=ramp)
    self.assertTrue(average.enabled)
    in_graph = tf.function(average.Update)
    rng = np.random.RandomState(0)
    w, moving = np.ones(2), np.ones(2)  # From the variables, not from zero.
    for t in range(6):
      values = rng.randn(2, 2)
      layer.vars.w.assign(values[0])
      layer.vars.moving.assign(values[1])
      update = in_graph if t % 2 else average.Update
      update(layer.vars, tf.constant(t, tf.int64))
      decay = min(0.5, (1 + t) / (10 + t)) if ramp else 0.5
      w = decay * w + (1 - decay) * values[0]
      moving = decay * moving + (1 - decay) * values[1]
      self.assertAllClose(average.slots['net/w/ema'], w, rtol=1e-14)
      self.assertAllClose(average.slots['net/moving/ema'], moving, rtol=1e-14)
      self.assertAllEqual(layer.vars.w, values[0])

  def testEvaluatesWithTheAverages(self):
    layer = _Layer()
    average = _Average(layer, decay=0.9)
    layer.vars.w.assign([5.0, 5.0])
    averages = average.Averages(layer.vars)
    self.assertIs(averages.count, layer.vars.count)
    x = tf.constant([1.0, 2.0], tf.float64)
    outputs = layer.FProp(layer.ThetaFrom(averages), x)
    self.assertAllClose(outputs, [2.0, 3.0])
    self.assertAllClose(layer(x), [6.0, 11.0])

  def testShadowsAreOnTheirVariablesDevices(self):
    layer = _Layer()
    average = _Average(layer, decay=0.9)
    self.assertCountEqual(
      average.slots, average.SlotSpecs(layer.VariableSpecs())
    )
    self.assertCountEqual(average.slots, ['net/w/ema', 'net/moving/ema'])
    for shadow in average.slots.values():
      self.assertEndsWith(shadow.device, 'CPU:1')
    update = tf.function(lambda: average.Update(layer.vars, 0))
    nodes = update.get_concrete_function().graph.as_graph_def().node
    devices = [n.device for n in nodes if n.op == 'AssignSubVariableOp']
    self.assertLen(devices, 2)
    for device in devices:
      self.assertEndsWith(device, 'CPU:1')

  def testReset(self):
    layer = _Layer()
    average = _Average(layer, decay=0.9)
    layer.vars.w.assign([5.0, 6.0])
    average.Reset(layer.vars)
    self.assertAllEqual(average.slots['net/w/ema'], [5.0, 6.0])

  def testAlmostOneInFloat32(self):
    """1 - decay is taken in float64: float32 has no 1e-9 next to 1."""
    spec = weights.VariableSpec(
      'w', (1,), tf.float32, weights.WeightInit.Constant(0.0), True, (), 1
    )
    variables = NestedMap(w=spec.Create())
    average = (
      ema.ExponentialMovingAverage.Params()
      .Set(decay=1 - 1e-9, ramp=False)
      .Instantiate()
    )
    average.InstantiateVariables(variables)
    variables.w.assign([1.0])
    average.Update(variables, 0)
    self.assertAllClose(average.slots['w/ema'], [1e-9], rtol=1e-5, atol=0.0)

  def testOffByDefault(self):
    layer = _Layer()
    average = _Average(layer)
    self.assertFalse(average.enabled)
    average.Update(layer.vars, 0)
    self.assertEmpty(average.slots)
    self.assertEmpty(average.SlotSpecs(layer.VariableSpecs()))
    self.assertIs(average.Averages(layer.vars).w, layer.vars.w)

  def testErrors(self):
    params = ema.ExponentialMovingAverage.Params()
    for decay in (1.0, -0.1):
      with self.assertRaisesRegex(ValueError, f'decay={decay} must be'):
        params.Copy().Set(decay=decay).Instantiate()
    layer = _Layer()
    average = params.Copy().Set(decay=0.9).Instantiate()
    with self.assertRaisesRegex(RuntimeError, 'no moving averages yet'):
      average.Update(layer.vars, 0)
    average.InstantiateVariables(layer.vars)
    with self.assertRaisesRegex(RuntimeError, 'exist already'):
      average.InstantiateVariables(layer.vars)


if __name__ == '__main__':
  tf.test.main()
