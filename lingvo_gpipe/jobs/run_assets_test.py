"""Tests of run_assets."""

import os

from absl.testing import absltest

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.jobs import run_assets


class RunAssetsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    path = os.path.join(self.create_tempdir().full_path, 'run')
    self._logdir = logdir_lib.LogDir(path)

  def testAreTheSameEverAfter(self):
    assets = {'vocab.model': b'\x00\xff', 'b': b''}
    run_assets.Check(self._logdir, assets)  # Nothing has begun.
    run_assets.Write(self._logdir, assets)
    run_assets.Check(self._logdir, assets)
    run_assets.Check(self._logdir, {})
    self.assertEqual(run_assets.Read(self._logdir, 'vocab.model'), b'\x00\xff')
    self.assertCountEqual(
      os.listdir(os.path.join(self._logdir.path, 'assets')), assets
    )
    with self.assertRaisesRegex(
      user_error.UserError, 'vocab.model differs from vocab.model of the data'
    ):
      run_assets.Check(self._logdir, {'vocab.model': b'other'})

  def testNotThere(self):
    with self.assertRaisesRegex(
      user_error.UserError, 'vocab.model cannot be read .No such file'
    ):
      run_assets.Read(self._logdir, 'vocab.model')


if __name__ == '__main__':
  absltest.main()
