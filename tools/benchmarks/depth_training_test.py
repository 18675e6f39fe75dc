"""Tests of depth_training."""

import json
import os

from absl.testing import absltest

from tasks.mt import test_translation_data, test_vocabulary
from tools.benchmarks import tool_process


class DepthTrainingTest(absltest.TestCase):
  def testDeepAgainstWide(self):
    path = os.path.join(self.create_tempdir().full_path, 'depth.json')
    done = tool_process.Run(
      'depth_training',
      '--wide_against_deep',
      '--layers=1',
      '--seeds=1',
      '--steps=4',
      '--batch_size=2',
      '--sequence_length=8',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    heading, *lines = done.stdout.splitlines()
    self.assertRegex(heading, r'^measures +L +hidden .* worst loss .* skipped$')
    self.assertLen(lines, 2)
    with open(path) as f:
      written = json.load(f)
    self.assertEqual(written['options']['learning_rate'], 0.3)
    deep, wide = written['rows']
    for row in (deep, wide):
      self.assertEqual((row['measures'], row['seed']), ('all', 1))
      self.assertLen(row['losses'], 4)
      self.assertEqual((row['non_finite'], row['skipped']), (0, 0))
    self.assertEqual((deep['layers'], deep['hidden_dim']), (2, 64))
    self.assertEqual((wide['layers'], wide['hidden_dim']), (1, 128))
    # The scales of one more pair of norms.
    self.assertEqual(deep['parameters'] - wide['parameters'], 2 * 16)

  def testTranslation(self):
    folder = self.create_tempdir().full_path
    test_translation_data.Write(folder)
    path = os.path.join(folder, 'depth.json')
    done = tool_process.Run(
      'depth_training',
      '--architecture=encoder_decoder',
      f'--data_dir={folder}',
      f'--vocab_size={test_vocabulary.Get().size}',
      '--measures=init',
      '--layers=2',
      '--seeds=1',
      '--steps=3',
      '--batch_size=2',
      '--final_norm',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    with open(path) as f:
      written = json.load(f)
    self.assertEqual(written['architecture'], 'encoder_decoder')
    self.assertEqual(written['options']['architecture']['data_dir'], folder)
    (row,) = written['rows']
    self.assertEqual((row['measures'], row['layers']), ('init', 2))
    self.assertLen(row['losses'], 3)

  def testMistake(self):
    done = tool_process.Run('depth_training', '--measures=init+magic')
    self.assertEqual(done.returncode, 2, done.stderr)
    self.assertIn("error: --measures: 'magic' is none of init", done.stderr)


if __name__ == '__main__':
  absltest.main()
