"""Tests for slots."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import nested_map, weights
from lingvo_gpipe.train import slots

NestedMap = nested_map.NestedMap


def setUpModule():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
  )


def _Spec(path, **kwargs):
  return weights.VariableSpec(
    path=path,
    shape=(2, 3),
    dtype=tf.float64,
    init=weights.WeightInit.Constant(5.0),
    trainable=kwargs.get('trainable', True),
    collections=('l2',),
    seed=1,
  )


class SlotsTest(absltest.TestCase):
  def testSlotIsLikeItsVariableAndBesideIt(self):
    spec = _Spec('net/w')
    with tf.device('CPU:1'):
      variable = spec.Create()
    slot_spec = slots.SlotSpec(spec, 'ms', 0.25)
    self.assertEqual(slot_spec.path, 'net/w/ms')
    self.assertEqual(slot_spec.num_bytes, 2 * 3 * 8)
    self.assertEqual(slot_spec.collections, ())
    slot = slots.CreateSlot(slot_spec, variable)
    self.assertEqual(slot.device, variable.device)
    self.assertEqual(slot.dtype, tf.float64)
    self.assertFalse(slot.trainable)
    self.assertEqual(slot.numpy().tolist(), [[0.25] * 3] * 2)

  def testSpecsOfTreesAndOfVariablesAlone(self):
    specs = NestedMap(a=[_Spec('net/a'), _Spec('net/b', trainable=False)])
    variables = tf.nest.map_structure(lambda s: s.Create(), specs)
    self.assertEqual(slots.SpecsOf(variables, specs), specs.a)
    for given, made in zip(specs.a, slots.SpecsOf(variables), strict=True):
      for field in ('path', 'shape', 'dtype', 'trainable'):
        self.assertEqual(getattr(given, field), getattr(made, field))
      self.assertEqual(made.collections, ())

  def testErrors(self):
    twice = NestedMap(a=_Spec('net/w'), b=_Spec('net/w'))
    variables = tf.nest.map_structure(lambda s: s.Create(), twice)
    with self.assertRaisesRegex(ValueError, "two variables.*'net/w'"):
      slots.SpecsOf(variables, twice)
    with self.assertRaises(ValueError):
      slots.SpecsOf(variables, NestedMap(a=_Spec('net/w')))


if __name__ == '__main__':
  absltest.main()
