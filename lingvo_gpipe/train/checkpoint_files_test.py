"""Tests for checkpoint_files."""

from __future__ import annotations

import json
import os

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.train import checkpoint, checkpoint_files

_DATA = 'data-00000-of-00001'


def _Variables():
  return {
    'net/cells_000/w': tf.Variable(tf.range(100, dtype=tf.float32)),
    'net/cells_000/w/ms': tf.Variable(tf.ones([3, 4], tf.float64)),
    'odd.name/S.x': tf.Variable(7, dtype=tf.int64),
  }


class CheckpointFilesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.directory = os.path.join(self.create_tempdir().full_path, 'run.1')
    self.checkpointer = checkpoint.Checkpointer(
      self.directory, _Variables(), model='image.A'
    )

  def _Path(self, step, suffix=''):
    return os.path.join(self.directory, f'ckpt-{step:08d}{suffix}')

  def testNames(self):
    prefix = checkpoint_files.Prefix('/a.b/c', 123)
    self.assertEqual(prefix, '/a.b/c/ckpt-00000123')
    for suffix in ('', '.json', '.index', f'.{_DATA}'):
      self.assertEqual(checkpoint_files.PrefixOf(prefix + suffix), prefix)
      self.assertEqual(checkpoint_files.StepOf(prefix + suffix), 123)
    self.assertIsNone(checkpoint_files.StepOf('/a/best.json'))
    self.assertIsNone(checkpoint_files.StepOf('/a/ckpt-1.json'))

  def testListsCompleteOnesByStep(self):
    self.assertEqual(checkpoint_files.Checkpoints(self.directory), [])
    self.assertIsNone(checkpoint_files.Latest(self.directory))
    for step in (9, 100_000_000, 99_999_999):
      self.checkpointer.Save(step)
    os.unlink(self._Path(9, '.json'))
    self.assertEqual(
      checkpoint_files.Checkpoints(self.directory),
      [self._Path(99_999_999), self._Path(100_000_000)],
    )
    self.assertEqual(
      checkpoint_files.Latest(self.directory), self._Path(100_000_000)
    )

  def testReadsWithoutTheModel(self):
    prefix = self.checkpointer.Save(5, {'input_position': 5})
    info = checkpoint_files.ReadInfo(prefix)
    self.assertEqual(info['model'], 'image.A')
    self.assertEqual(info['global_step'], 5)
    self.assertEqual(info['metadata'], {'input_position': 5})
    self.assertEqual(info['tensorflow_version'], tf.__version__)
    self.assertEqual(
      info['files'],
      {
        os.path.basename(path): os.path.getsize(path)
        for path in checkpoint_files.Files(prefix)
        if not path.endswith('.json')
      },
    )
    self.assertEqual(
      checkpoint_files.ReadVariables(prefix),
      {
        'net/cells_000/w': ((100,), tf.float32),
        'net/cells_000/w/ms': ((3, 4), tf.float64),
        'odd.name/S.x': ((), tf.int64),
      },
    )
    checkpoint_files.Verify(prefix)

  def _Damage(self, step, suffix, how):
    path = self._Path(step, suffix)
    with open(path, 'rb') as f:
      content = bytearray(f.read())
    if how == 'truncate':
      del content[-10:]
    elif how == 'flip':
      content[20] ^= 1
    with open(path, 'wb') as f:
      f.write(content)
    if how == 'remove':
      os.unlink(path)
    return path

  @parameterized.product(
    suffix=['.index', f'.{_DATA}', '.json'],
    how=['truncate', 'flip', 'remove'],
  )
  def testDamageIsFoundAndAGoodOneOffered(self, suffix, how):
    for step in (1, 2, 3):
      self.checkpointer.Save(step)
    path = self._Damage(3, suffix, how)
    if (suffix, how) == ('.json', 'remove'):
      with self.assertRaisesRegex(
        checkpoint_files.CheckpointError,
        f'no complete checkpoint .*{path} is missing; complete ones there: '
        'ckpt-00000001, ckpt-00000002',
      ):
        checkpoint_files.Verify(self._Path(3))
      return
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError,
      f'{self._Path(3)} is damaged, in {path}: .*newest good one is '
      f'{self._Path(2)}',
    ):
      checkpoint_files.Verify(self._Path(3))
    checkpoint_files.Verify(self._Path(2))

  def testTheGoodOneOfferedIsGood(self):
    for step in (1, 2, 3):
      self.checkpointer.Save(step)
    self._Damage(3, f'.{_DATA}', 'truncate')
    self._Damage(2, f'.{_DATA}', 'flip')
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError,
      rf'bytes instead of \d+; the newest good one is {self._Path(1)}',
    ):
      checkpoint_files.CheckSizes(self._Path(3))
    self._Damage(1, '.index', 'remove')
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError, 'Checksum.*no other good one'
    ):
      checkpoint_files.Verify(self._Path(2))

  def testLaterFormatIsRefused(self):
    prefix = self.checkpointer.Save(1)
    with open(f'{prefix}.json') as f:
      info = json.load(f)
    for version, message in ((2, 'has format 2, of a later'), ('x', 'damaged')):
      with open(f'{prefix}.json', 'w') as f:
        json.dump({**info, 'format_version': version}, f)
      with self.assertRaisesRegex(checkpoint_files.CheckpointError, message):
        checkpoint_files.ReadInfo(prefix)
    for text in ('[1]', '{"format_version": 1}'):
      with open(f'{prefix}.json', 'w') as f:
        f.write(text)
      with self.assertRaisesRegex(checkpoint_files.CorruptError, 'it has no'):
        checkpoint_files.ReadInfo(prefix)


if __name__ == '__main__':
  absltest.main()
