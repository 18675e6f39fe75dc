"""Tests of the tool: small sizes, for real."""

import json
import os
from unittest import mock

from absl.testing import absltest

from tools.benchmarks import tool_process
from tools.benchmarks.paper import published
from tools.benchmarks.table_2 import runs


class Table2Test(absltest.TestCase):
  def testWorkersAndScale(self):
    folder = self.create_tempdir().full_path
    result = tool_process.Run(
      'table_2',
      '--sections=workers,scale',
      '--preset=small',
      '--rounds=1',
      '--scale_layers=8',
      '--scale_devices=2,4,8',
      f'--output_dir={folder}',
    )
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    with open(os.path.join(folder, 'table_2.json')) as f:
      rows = json.load(f)['rows']
    workers = [row for row in rows if row['section'] == 'workers']
    # The mini-batch of 8 is not a multiple of 32.
    self.assertEqual(
      [(r['num_devices'], r['num_micro_batches']) for r in workers][:4],
      [(1, 1), (2, 1), (1, 4), (2, 4)],
    )
    for row in workers:
      self.assertGreater(row['measured_seconds'], 0.0)
      self.assertAlmostEqual(
        row['error'], row['seconds'] / row['measured_seconds'] - 1
      )
    scale = [row for row in rows if row['section'] == 'scale']
    throughputs = [row['relative'] for row in scale]
    self.assertEqual(throughputs[0], 1.0)
    # Equal blocks and free links: more devices are faster, within the bound.
    for row in scale:
      k, m = row['num_devices'], row['num_micro_batches']
      self.assertLessEqual(
        row['relative'], 1.35 * (k / (m + k - 1)) / (2 / (m + 1))
      )
    self.assertEqual(throughputs, sorted(throughputs))
    self.assertTrue(os.path.exists(os.path.join(folder, 'table_2.png')))

  def testPaperModel(self):
    """The way of the paper's models, with a small one in their place."""
    with mock.patch.dict(
      runs._MODELS,
      {published.TRANSFORMER: ('lm.small.TransformerSmall', (1, 2))},
    ):
      rows = runs.OfPaperModel(published.TRANSFORMER)
    self.assertLen(rows, 9)
    for row in rows:
      key = row['num_devices'], row['num_micro_batches']
      self.assertEqual(
        row['paper'], published.THROUGHPUT[published.TRANSFORMER][key]
      )
    self.assertEqual(rows[0]['relative'], 1.0)

  def testMistakes(self):
    for args, message in (
      (['--sections=all'], '--sections=all: choose from models, workers'),
      (['--models=BERT'], '--models=BERT: choose from AmoebaNet-D'),
      (['--scale_devices=0'], "'0' must be a number of 1 or more"),
    ):
      result = tool_process.Run('table_2', *args)
      self.assertEqual(result.returncode, 2, result.stderr)
      self.assertIn(message, result.stderr)


if __name__ == '__main__':
  absltest.main()
