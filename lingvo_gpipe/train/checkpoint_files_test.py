"""Tests for checkpoint_files."""

from __future__ import annotations

import os

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.train import checkpoint, checkpoint_files


class CheckpointFilesTest(absltest.TestCase):
  def testNames(self):
    prefix = checkpoint_files.Prefix('/a.b/c', 123)
    self.assertEqual(prefix, '/a.b/c/ckpt-00000123')
    for suffix in ('', '.json', '.index', '.data-00000-of-00001'):
      self.assertEqual(checkpoint_files.PrefixOf(prefix + suffix), prefix)
      self.assertEqual(checkpoint_files.StepOf(prefix + suffix), 123)
    self.assertIsNone(checkpoint_files.StepOf('/a/best.json'))
    self.assertIsNone(checkpoint_files.StepOf('/a/ckpt-1.json'))

  def testListsCompleteOnesByStep(self):
    directory = os.path.join(self.create_tempdir().full_path, 'run.1')
    checkpointer = checkpoint.Checkpointer(directory, {'w': tf.Variable(1.0)})
    self.assertEqual(checkpoint_files.Checkpoints(directory), [])
    self.assertIsNone(checkpoint_files.Latest(directory))
    for step in (9, 100_000_000, 99_999_999):
      checkpointer.Save(step)
    os.unlink(f'{checkpoint_files.Prefix(directory, 9)}.json')
    self.assertEqual(
      checkpoint_files.Checkpoints(directory),
      [
        checkpoint_files.Prefix(directory, s) for s in (99_999_999, 100_000_000)
      ],
    )
    self.assertEqual(
      checkpoint_files.Latest(directory),
      os.path.join(directory, 'ckpt-100000000'),
    )


if __name__ == '__main__':
  absltest.main()
