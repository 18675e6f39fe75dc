"""Tests of value_files; checkpoint_test has files that are not as they were."""

import os

import numpy as np
import tensorflow as tf

from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.train import checkpoint_integrity, value_files


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Variables(start):
  """Of several dtypes and shapes, on two devices."""
  with tf.device('/device:CPU:0'):
    variables = {
      'net/a/w': tf.Variable(tf.fill([3, 4], float(start))),
      'net/step': tf.Variable(start, dtype=tf.int64),
    }
  with tf.device('/device:CPU:1'):
    variables['net/b.c/w'] = tf.Variable(tf.fill([2], float(start) + 0.5))
    variables['net/half'] = tf.Variable(
      tf.cast(tf.fill([5], start), tf.float16)
    )
  return variables


class ValueFilesTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._prefix = os.path.join(self.get_temp_dir(), self.id(), 'ckpt')
    os.makedirs(os.path.dirname(self._prefix))

  def _AssertEqual(self, variables, others):
    self.assertEqual(variables.keys(), others.keys())
    for name, variable in variables.items():
      self.assertAllEqual(variable, others[name], name)

  def testThereAndBack(self):
    for device in (None, '/device:CPU:0'):
      value_files.ValueFiles(_Variables(7), device).Write(self._prefix)
      restored = _Variables(0)
      value_files.ValueFiles(restored, device).Read(self._prefix)
      self._AssertEqual(restored, _Variables(7))

  def testFilesAreThoseOfTensorFlow(self):
    value_files.ValueFiles(_Variables(7)).Write(self._prefix)
    restored = _Variables(0)
    status = tf.train.Checkpoint(variables=restored).read(self._prefix)
    status.assert_existing_objects_matched()
    self._AssertEqual(restored, _Variables(7))
    tf.train.Checkpoint(variables=_Variables(9)).write(self._prefix)
    value_files.ValueFiles(restored).Read(self._prefix)
    self._AssertEqual(restored, _Variables(9))

  def testSomeOfTheVariables(self):
    value_files.ValueFiles(_Variables(7)).Write(self._prefix)
    some = {'net/b.c/w': tf.Variable([0.0, 0.0])}
    value_files.ValueFiles(some).Read(self._prefix)
    self.assertAllEqual(some['net/b.c/w'], [7.5, 7.5])

  def testTracesOnce(self):
    variables = _Variables(0)
    files = value_files.ValueFiles(variables)
    for i in range(4):
      variables['net/step'].assign(i)
      files.Write(f'{self._prefix}{i}')
    for i in range(4):
      files.Read(f'{self._prefix}{i}')
      self.assertAllEqual(variables['net/step'], i)
    for function in (files._write, files._read):
      self.assertEqual(function.experimental_get_tracing_count(), 1)

  def testUnwritable(self):
    with self.assertRaises(tf.errors.OpError):
      value_files.ValueFiles(_Variables(0)).Write('/proc/nowhere/ckpt')
    with self.assertRaises(tf.errors.OpError):
      value_files.ValueFiles(_Variables(0)).Read(self._prefix)


class SnapshotTest(tf.test.TestCase):
  def testHoldsOldValues(self):
    prefix = os.path.join(self.get_temp_dir(), 'ckpt')
    variables = _Variables(1)
    snapshot = value_files.Snapshot(variables)
    for start in (1, 2):
      for name, value in _Variables(start).items():
        variables[name].assign(value)
      snapshot.Take()
      variables['net/a/w'].assign_add(tf.ones([3, 4]))
      snapshot.Write(prefix)
      restored = _Variables(0)
      value_files.ValueFiles(restored).Read(prefix)
      for name, value in _Variables(start).items():
        self.assertAllEqual(restored[name], value)
      self.assertAllEqual(variables['net/a/w'], np.full([3, 4], start + 1.0))
      snapshot.Drop()
      shapes = {tuple(c.read_value().shape) for c in snapshot._copies.values()}
      self.assertEqual(shapes, {(0,)})

  def testIsReadableByItsNames(self):
    prefix = os.path.join(self.get_temp_dir(), 'named')
    snapshot = value_files.Snapshot(_Variables(3))
    snapshot.Take()
    snapshot.Write(prefix)
    found = checkpoint_integrity.ReadVariables(prefix)
    self.assertEqual(found['net/b.c/w'], ((2,), tf.float32))
    self.assertEqual(found['net/step'], ((), tf.int64))


if __name__ == '__main__':
  tf.test.main()
