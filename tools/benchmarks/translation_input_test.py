"""Tests of translation_input, the benchmark."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process


class TranslationInputTest(absltest.TestCase):
  def testTable(self):
    path = os.path.join(self.create_tempdir().full_path, 'input.json')
    done = tool_process.Run(
      'translation_input',
      '--pairs=300',
      '--groups=4',
      '--batch_tokens=512',
      '--seconds=0.1',
      '--rounds=2',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    heading, *lines = done.stdout.splitlines()
    self.assertRegex(
      heading, r'^mode +start s +pairs/s +pairs/core s +ids/s +fill$'
    )
    self.assertLen(lines, 3)
    self.assertIn('round 2/2', done.stderr)
    with open(path) as f:
      written = json.load(f)
    self.assertEqual(written['num_groups'], 4)
    self.assertBetween(written['num_pairs'], 290, 300)
    rows = {row['mode']: row for row in written['rows']}
    self.assertEqual(list(rows), ['buckets', 'packed', 'evaluation'])
    for row in rows.values():
      self.assertLen(row['all_pairs_per_second'], 2)
      self.assertGreater(row['ids_per_second'], row['pairs_per_second'])
    self.assertGreater(rows['packed']['fill'], rows['buckets']['fill'])

  def testHelp(self):
    done = tool_process.Run('translation_input', '--help')
    self.assertEqual(done.returncode, 0)
    self.assertIn('--batch_tokens', done.stdout)

  def testNoData(self):
    done = tool_process.Run('translation_input', '--data_dir=/no/such/folder')
    self.assertEqual(done.returncode, 2)
    self.assertIn('tools.mt.prepare', done.stderr)


if __name__ == '__main__':
  absltest.main()
