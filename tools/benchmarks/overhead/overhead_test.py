"""Tests of the tool: small sizes, for real."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process
from tools.benchmarks.overhead import breakdown


class OverheadTest(absltest.TestCase):
  def testSteps(self):
    folder = self.create_tempdir().full_path
    result = tool_process.Run(
      'overhead',
      '--preset=small',
      '--rounds=2',
      '--micro_batches=4',
      '--schedules=1f1b',
      f'--output_dir={folder}',
    )
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    with open(os.path.join(folder, 'overhead.json')) as f:
      paper, row = json.load(f)['rows']
    self.assertEqual(paper['computation'], 0.656)
    self.assertAlmostEqual(sum(row[part] for part in breakdown.PARTS), 1.0)
    for part in ('computation', 'recomputation', 'bubble', 'weight update'):
      self.assertGreater(row[part], 0.0, part)
    self.assertTrue(os.path.exists(os.path.join(folder, 'overhead.png')))

  def testMistakes(self):
    for args, message in (
      (['--schedules=interleaved'], '--schedules=interleaved: choose from'),
      (['--policies=auto'], '--policies=auto: choose from none, partition'),
      (['--micro_batches=5'], '--micro_batches: 5 does not divide'),
    ):
      result = tool_process.Run('overhead', *args)
      self.assertEqual(result.returncode, 2, result.stderr)
      self.assertIn(message, result.stderr)


if __name__ == '__main__':
  absltest.main()
