"""Tests of pipeline_memory."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process


class PipelineMemoryTest(absltest.TestCase):
  def testTable(self):
    path = os.path.join(self.create_tempdir().full_path, 'memory.json')
    done = tool_process.Run(
      'pipeline_memory',
      '--preset=small',
      '--workers=1',
      '--micro_batches=2',
      '--policies=cell',
      '--steps=1',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('K=1 M=2 1f1b cell, 4 blocks: trained', done.stderr)
    self.assertRegex(done.stdout, r'(?m)^1 +2 +1f1b +cell +4 +trained ')
    with open(path) as f:
      (row,) = json.load(f)['rows']
    self.assertGreater(row['peak'][0], row['arithmetic'][0])
    self.assertEqual(row['weights'], 4 * 8_320)

  def testSearchWhereNothingFits(self):
    done = tool_process.Run(
      'pipeline_memory',
      '--preset=small',
      '--workers=1',
      '--micro_batches=1',
      '--policies=none',
      '--search_layers',
      '--worker_memory=20M',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('1 blocks: out of memory', done.stderr)
    self.assertRegex(done.stdout, r'(?m)^1 +1 +1f1b +none +0 ')

  def testSearchNeedsALimit(self):
    done = tool_process.Run('pipeline_memory', '--search_layers')
    self.assertEqual(done.returncode, 2)
    self.assertIn('error: --search_layers needs --worker_memory', done.stderr)


if __name__ == '__main__':
  absltest.main()
