"""Tests of pipeline_speed."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process


class PipelineSpeedTest(absltest.TestCase):
  def testTable(self):
    path = os.path.join(self.create_tempdir().full_path, 'speed.json')
    done = tool_process.Run(
      'pipeline_speed',
      '--preset=small',
      '--workers=1,2',
      '--micro_batches=4',
      '--policies=none',
      '--unrolled',
      '--rounds=3',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    heading, *lines = done.stdout.splitlines()
    self.assertRegex(heading, r'^K +M +schedule +recompute .* s/step .* loss$')
    self.assertLen(lines, 3)
    self.assertIn('round 3/3', done.stderr)
    with open(path) as f:
      written = json.load(f)
    alone, unrolled, two = written['rows']
    self.assertEqual(unrolled['order'], 'unrolled')
    self.assertEqual(alone['speedup'], 1.0)
    self.assertEqual(alone['bound'], 1.0)
    # 4 micro-batches through two equal partitions: 2 x 4 / 5.
    self.assertAlmostEqual(two['bound'], 1.6)
    self.assertAlmostEqual(two['speedup'], alone['seconds'] / two['seconds'])
    self.assertAlmostEqual(two['efficiency'], two['speedup'] / 1.6)
    self.assertBetween(two['bubble'], 0.0, 1.0)
    for row in written['rows']:
      self.assertLen(row['all_seconds'], 3)
      self.assertAlmostEqual(row['loss'], alone['loss'], 4)
      self.assertGreater(row['nodes'], 100)
    self.assertEqual(written['sizes']['layers'], 4)

  def testMistake(self):
    done = tool_process.Run('pipeline_speed', '--micro_batches=5')
    self.assertEqual(done.returncode, 2)
    self.assertIn('error: --micro_batches: 5 does not divide', done.stderr)


if __name__ == '__main__':
  absltest.main()
