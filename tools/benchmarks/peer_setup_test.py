"""Tests of peer_setup."""

import json
import os

import numpy as np
from absl.testing import absltest

from tools.benchmarks import peer_setup, pipeline, stack_sizes

_SIZES = stack_sizes.PRESETS['small']


class PeerSetupTest(absltest.TestCase):
  def testCommonNamesTheArrays(self):
    folder = self.create_tempdir().full_path
    peer_setup.WriteArrays(folder, _SIZES)
    config = pipeline.Config(2, 4, 'gpipe', policy='partition')
    common = peer_setup.Common(
      [config], _SIZES, folder=folder, learning_rate=0.5
    )
    common = json.loads(json.dumps(common))
    self.assertEqual(common['model_dim'], 16)
    self.assertEqual(common['num_partitions'], 2)
    self.assertEqual(
      common['configs'],
      [
        {
          'name': config.name,
          'schedule': 'gpipe',
          'num_micro_batches': 4,
          'policy': 'partition',
        }
      ],
    )
    with np.load(common['arrays']) as arrays:
      self.assertEqual(arrays['inputs'].shape, (8, 8, 16))
      self.assertEqual(arrays['block_3/hidden'].shape, (16, 32))
      self.assertLen(arrays.files, 2 + 4 * 6)

  def testCores(self):
    available = sorted(os.sched_getaffinity(0))
    cores = peer_setup.Cores(len(available) + 1)
    self.assertEqual(cores, [*available, available[0]])


if __name__ == '__main__':
  absltest.main()
