"""Tests of peers."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import (
  framework_checks,
  frameworks,
  harness,
  peer_process,
  peers,
  pipeline,
  stack_sizes,
  tool_process,
)

Config = pipeline.Config
Entry = peers.Entry


class PeersTest(absltest.TestCase):
  def testTable(self):
    path = os.path.join(self.create_tempdir().full_path, 'peers.json')
    pythons = {
      framework: framework_checks.Python(framework)
      for framework in (frameworks.TORCH, frameworks.LINGVO)
    }
    done = tool_process.Run(
      'peers',
      '--preset=small',
      '--workers=2',
      '--micro_batches=4',
      '--schedules=gpipe',
      '--policies=partition',
      '--rounds=2',
      f'--torch_python={pythons[frameworks.TORCH]}',
      f'--lingvo_python={pythons[frameworks.LINGVO]}',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertRegex(done.stdout, r'(?m)^lingvo_gpipe +2 +4 +gpipe +partition ')
    with open(path) as f:
      rows = json.load(f)['rows']
    measured = {row['framework'].split()[0] for row in rows}
    for framework, python in pythons.items():
      if peer_process.CanImport(python, framework.module):
        self.assertIn(framework.name, measured)
      else:
        self.assertIn(f'{framework.name}: not installed', done.stdout)
    for row in rows:
      self.assertAlmostEqual(row['loss'] / rows[0]['loss'], 1.0, 4)

  def testRows(self):
    def _Samples(*seconds):
      return [harness.Sample(s, 0.5) for s in seconds]

    rows = peers.Rows(
      {
        Entry(peers.OURS, Config(1, 4)): _Samples(4.0, 5.0, 6.0),
        Entry(peers.OURS, Config(2, 4)): _Samples(2.0, 2.0, 2.0),
        Entry('Other', Config(1, 4, 'gpipe')): _Samples(8.0, 8.0, 8.0),
        Entry('Other', Config(1, 4)): _Samples(4.0, 4.0, 4.0),
        Entry('Other', Config(2, 4)): _Samples(1.0, 1.0, 1.0),
      },
      stack_sizes.Sizes(1, 4, 4, 1, 10, 10),
    )
    self.assertEqual([r['seconds'] for r in rows], [5.0, 2.0, 8.0, 4.0, 1.0])
    # Over the faster one with one partition.
    self.assertEqual([r['speedup'] for r in rows], [1.0, 2.5, 0.5, 1.0, 4.0])
    # With one partition ours does the same whatever the schedule.
    self.assertEqual(
      [r['versus'] for r in rows], [None, None, 0.625, 1.25, 2.0]
    )
    self.assertEqual(rows[-1]['tokens_per_second'], 100.0)


if __name__ == '__main__':
  absltest.main()
