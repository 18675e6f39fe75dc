"""Tests for checkpoint_mismatch."""

from __future__ import annotations

import os

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  checkpoint_mismatch,
)


class CheckpointMismatchTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.variables = {
      'net/a': tf.Variable(tf.zeros([3, 4])),
      'net/a/slot': tf.Variable(1, dtype=tf.int64),
    }
    self.prefix = checkpoint.Checkpointer(
      self.create_tempdir().full_path, self.variables, model='image.A'
    ).Save(1)

  def _Check(self, variables, model='image.A', ignore_unused=False):
    checkpoint_mismatch.Check(
      self.prefix,
      'image.A',
      variables,
      model=model,
      ignore_unused=ignore_unused,
    )

  def testTheSame(self):
    self._Check(self.variables)
    # Names of models may change; what counts are the variables.
    self._Check(self.variables, model='image.B')

  def testUnused(self):
    some = {'net/a': self.variables['net/a']}
    self._Check(some, ignore_unused=True)
    with self.assertRaisesRegex(
      checkpoint_files.MismatchError,
      '1 variables are unknown here: net/a/slot',
    ):
      self._Check(some)

  def testEachKindIsNamed(self):
    others = {
      'net/a': tf.Variable(tf.zeros([3, 4], tf.float64)),
      'net/b': tf.Variable(0.0),
    }
    with self.assertRaisesRegex(
      checkpoint_files.MismatchError,
      "is of model 'image.A', but this is 'image.B': 1 variables differ: net/a "
      r'\(there float32 \[3, 4\], here float64 \[3, 4\]\); 1 variables are '
      r'missing in it: net/b \(float32 \[\]\); 1 variables are unknown here',
    ):
      self._Check(others, model='image.B')

  def testAtMostTenAreListed(self):
    others = {f'net/c/v{i:02d}': tf.Variable([1.0]) for i in range(25)}
    with self.assertRaisesRegex(
      checkpoint_files.MismatchError,
      "of model 'image.A', with other params: 25 variables are missing in it: "
      '.*net/c/v09 [^,]* and 15 more',
    ):
      self._Check({**self.variables, **others})

  def testDamagedIndex(self):
    os.truncate(f'{self.prefix}.index', 10)
    with self.assertRaisesRegex(checkpoint_files.CorruptError, 'index'):
      self._Check(self.variables)


if __name__ == '__main__':
  absltest.main()
