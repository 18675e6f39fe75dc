"""Tests of the tool: small sizes, for real where hosts can be emulated."""

import json
import os
from unittest import mock

from absl.testing import absltest

from tools.benchmarks import tool_process
from tools.benchmarks.table_3 import runs


class Table3Test(absltest.TestCase):
  def testHosts(self):
    folder = self.create_tempdir().full_path
    result = tool_process.Run(
      'table_3',
      '--sections=workers',
      '--preset=small',
      '--rounds=1',
      '--micro_batches=4',
      '--bandwidths=2M',
      f'--output_dir={folder}',
    )
    if 'hosts can' in result.stderr:
      self.skipTest(result.stderr)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    with open(os.path.join(folder, 'table_3.json')) as f:
      alone, two = json.load(f)['rows']
    self.assertEqual((alone['num_devices'], two['num_devices']), (1, 2))
    # 4 micro-batches of 2 x 8 tokens of width 16 take 16 ms there.
    self.assertGreater(two['seconds'], 0.016)
    self.assertGreater(two['measured_seconds'], 0.0)
    self.assertEqual(alone['measured_speedup'], 1.0)
    self.assertTrue(os.path.exists(os.path.join(folder, 'table_3.png')))

  def testPaperModel(self):
    """The way of the paper's models, with a small one in their place."""
    name = 'Transformer-24'
    with mock.patch.dict(
      runs._MODELS, {name: ('lm.small.TransformerSmall', (1, 2))}
    ):
      rows = runs.OfPaperModel(name, [1e12, 1e6], 8)
    self.assertLen(rows, 9)
    self.assertEqual(
      [row.get('paper') for row in rows[:4]], [1, 1.8, 3.3, None]
    )
    self.assertEqual(rows[0]['relative'], 1.0)
    self.assertEqual(
      [row.get('bandwidth') for row in rows[::3]], [None, 1e12, 1e6]
    )
    # The slow link is slower than the fast one, with any K.
    for fast, slow in zip(rows[3:6], rows[6:], strict=True):
      self.assertLess(slow['relative'], fast['relative'])

  def testMistakes(self):
    for args, message in (
      (['--sections=all'], '--sections=all: choose from models, workers'),
      (['--bandwidths=fast'], "--bandwidths='fast' is not a number above 0"),
      (['--micro_batches=5'], '--micro_batches=5 does not divide'),
    ):
      result = tool_process.Run('table_3', *args)
      self.assertEqual(result.returncode, 2, result.stderr)
      self.assertIn(message, result.stderr)


if __name__ == '__main__':
  absltest.main()
