"""Tests of average_checkpoints."""

import os

import numpy as np
import tensorflow as tf

from lingvo_gpipe.train import (
  average_checkpoints,
  checkpoint,
  checkpoint_files,
)


def _Variables(value=0.0, dim=2):
  return {
    'net/a/w': tf.Variable(np.full([dim, 3], value), dtype=tf.float32),
    'net/b.c': tf.Variable(10.0 * value, dtype=tf.float64),
    'count': tf.Variable(int(value), dtype=tf.int64),
  }


class AverageCheckpointsTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._directory = self.create_tempdir().full_path
    self._prefixes = []
    for step, value in enumerate((1.0, 2.0, 6.0)):
      checkpointer = checkpoint.Checkpointer(
        self._directory,
        {**_Variables(value), 'other': tf.Variable(value)},
        model='m',
      )
      self._prefixes.append(checkpointer.Save(step))

  def testMeans(self):
    variables = _Variables()
    average_checkpoints.Restore(self._prefixes, variables)
    self.assertAllEqual(variables['net/a/w'], np.full([2, 3], 3.0))
    self.assertEqual(float(variables['net/b.c']), 30.0)
    self.assertEqual(int(variables['count']), 6)
    average_checkpoints.Restore(self._prefixes[1:2], variables)
    self.assertAllEqual(variables['net/a/w'], np.full([2, 3], 2.0))

  def testOtherModel(self):
    for variables, message in (
      (_Variables(dim=4), r'net/a/w is float32 \[2, 3\], but here it is float'),
      (
        {'new': tf.Variable(1.0)},
        r'new is missing, but here it is float32 \[\]',
      ),
    ):
      with self.assertRaisesRegex(checkpoint_files.MismatchError, message):
        average_checkpoints.Restore(self._prefixes, variables)

  def testDamaged(self):
    path = f'{self._prefixes[1]}.index'
    os.truncate(path, os.path.getsize(path) - 1)
    variables = _Variables(7.0)
    with self.assertRaisesRegex(checkpoint_files.CorruptError, 'is damaged'):
      average_checkpoints.Restore(self._prefixes, variables)
    self.assertEqual(int(variables['count']), 7)


if __name__ == '__main__':
  tf.test.main()
