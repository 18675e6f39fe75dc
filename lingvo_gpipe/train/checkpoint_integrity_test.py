"""Tests for checkpoint_integrity."""

from __future__ import annotations

import json
import os
import subprocess

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  checkpoint_integrity,
)

_DATA = 'data-00000-of-00001'


def _Variables():
  return {
    'net/cells_000/w': tf.Variable(tf.range(100, dtype=tf.float32)),
    'net/cells_000/w/ms': tf.Variable(tf.ones([3, 4], tf.float64)),
    'odd.name/S.x': tf.Variable(7, dtype=tf.int64),
  }


class CheckpointIntegrityTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.directory = os.path.join(self.create_tempdir().full_path, 'run.1')
    self.checkpointer = checkpoint.Checkpointer(
      self.directory, _Variables(), model='image.A'
    )

  def _Path(self, step, suffix=''):
    return os.path.join(self.directory, f'ckpt-{step:08d}{suffix}')

  def testReadsWithoutTheModel(self):
    prefix = self.checkpointer.Save(5, {'input_position': 5})
    info = checkpoint_integrity.ReadInfo(prefix)
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
      checkpoint_integrity.ReadVariables(prefix),
      {
        'net/cells_000/w': ((100,), tf.float32),
        'net/cells_000/w/ms': ((3, 4), tf.float64),
        'odd.name/S.x': ((), tf.int64),
      },
    )
    checkpoint_integrity.Verify(prefix)

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
        checkpoint_integrity.Verify(self._Path(3))
      return
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError,
      f'{self._Path(3)} is damaged, in {path}: .*newest good one is '
      f'{self._Path(2)}',
    ):
      checkpoint_integrity.Verify(self._Path(3))
    checkpoint_integrity.Verify(self._Path(2))

  def testTheGoodOneOfferedIsGood(self):
    for step in (1, 2, 3):
      self.checkpointer.Save(step)
    self._Damage(3, f'.{_DATA}', 'truncate')
    self._Damage(2, f'.{_DATA}', 'flip')
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError,
      rf'bytes instead of \d+; the newest good one is {self._Path(1)}',
    ):
      checkpoint_integrity.CheckSizes(self._Path(3))
    self._Damage(1, '.index', 'remove')
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError, 'content has changed.*no other good one'
    ):
      checkpoint_integrity.Verify(self._Path(2))

  def testLaterFormatIsRefused(self):
    prefix = self.checkpointer.Save(1)
    with open(f'{prefix}.json') as f:
      info = json.load(f)
    cases = ((3, 'has format 3, of a later'), ('x', 'of another program'))
    for version, message in cases:
      with open(f'{prefix}.json', 'w') as f:
        json.dump({**info, 'format_version': version}, f)
      with self.assertRaisesRegex(checkpoint_files.CheckpointError, message):
        checkpoint_integrity.ReadInfo(prefix)
    for text in ('[1]', '{"format_version": 1}'):
      with open(f'{prefix}.json', 'w') as f:
        f.write(text)
      with self.assertRaisesRegex(checkpoint_files.CorruptError, 'it has no'):
        checkpoint_integrity.ReadInfo(prefix)

  @parameterized.parameters('.index', f'.{_DATA}', '.json')
  def testAnyBitIsMissed(self, suffix):
    """Or, in the JSON file, is of a space between values."""
    prefix = self.checkpointer.Save(1)
    path = f'{prefix}{suffix}'
    with open(path, 'rb') as f:
      content = f.read()
    info = checkpoint_integrity.ReadInfo(prefix)
    for bit in range(0, 8 * len(content), 37):
      changed = bytearray(content)
      changed[bit // 8] ^= 1 << bit % 8
      with open(path, 'wb') as f:
        f.write(changed)
      try:
        checkpoint_integrity.CheckContents(prefix)
      except checkpoint_files.CheckpointError as e:
        self.assertIn(path if 'damaged' in str(e) else prefix, str(e))
      else:
        self.assertEqual(checkpoint_integrity.ReadInfo(prefix), info)
        self.assertEqual(suffix, '.json')

  def testNothingChangesWhereRestoringIsRefused(self):
    self.checkpointer.Save(1)
    self.checkpointer.Save(2)
    path = self._Path(2, f'.{_DATA}')
    with open(path, 'r+b') as f:
      f.write(os.urandom(os.path.getsize(path)))
    variables = {k: tf.Variable(v + v) for k, v in _Variables().items()}
    before = {k: v.numpy().tolist() for k, v in variables.items()}
    reader = checkpoint.Checkpointer(self.directory, variables, model='image.A')
    with self.assertRaisesRegex(
      checkpoint_files.CorruptError,
      f'{path}: its content has changed .*CRC-32.*newest good one is '
      f'{self._Path(1)}: .*: mkdir -p (.*) && mv {self._Path(2)}.* (.*)',
    ) as caught:
      reader.Restore()
    self.assertEqual(
      {k: v.numpy().tolist() for k, v in variables.items()}, before
    )
    # The command that is offered does what it says.
    command = str(caught.exception).partition('it away: ')[2]
    subprocess.run(command, shell=True, check=True)
    self.assertEqual(reader.Restore()['global_step'], 1)

  def testOldFormatWithoutChecksums(self):
    prefix = self.checkpointer.Save(1)
    with open(f'{prefix}.json') as f:
      info = json.load(f)
    for name in ('checksum', 'checksums'):
      del info[name]
    with open(f'{prefix}.json', 'w') as f:
      json.dump({**info, 'format_version': 1}, f)
    self.assertEqual(self.checkpointer.Restore()['global_step'], 1)
    self._Damage(1, f'.{_DATA}', 'flip')
    with self.assertRaisesRegex(checkpoint_files.CorruptError, 'Checksum'):
      self.checkpointer.Restore()


if __name__ == '__main__':
  absltest.main()
