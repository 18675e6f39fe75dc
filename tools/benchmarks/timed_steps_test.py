"""Tests of timed_steps."""

import json
import os

from absl.testing import absltest, flagsaver

from tools.benchmarks import harness, pipeline, stack_sizes, timed_steps


class TimedStepsTest(absltest.TestCase):
  def testRow(self):
    sizes = stack_sizes.PRESETS['small']
    config = pipeline.Config(2, 4, schedule='gpipe')
    samples = [harness.Sample(s, None) for s in (0.3, 0.1, 0.2)]
    row = timed_steps.Row(config, samples, sizes)
    self.assertEqual(row['seconds'], 0.2)
    self.assertEqual(row['all_seconds'], [0.3, 0.1, 0.2])
    self.assertEqual(row['tokens_per_second'], sizes.tokens_per_step / 0.2)
    self.assertLessEqual(row['lower'], row['seconds'])
    self.assertGreaterEqual(row['upper'], row['seconds'])
    columns = timed_steps.CONFIG_COLUMNS + timed_steps.TIME_COLUMNS
    missing = [c.key for c in columns if c.key not in row]
    self.assertEqual(missing, ['speedup'])

  def testOutput(self):
    path = os.path.join(self.create_tempdir().full_path, 'rows.json')
    sizes = stack_sizes.PRESETS['small']
    with flagsaver.flagsaver(output=''):
      timed_steps.WriteOutput([{'a': 1}], sizes)
    self.assertFalse(os.path.exists(path))
    with flagsaver.flagsaver(output=path, rounds=3):
      timed_steps.WriteOutput([{'a': 1}], sizes)
    with open(path, encoding='utf-8') as f:
      written = json.load(f)
    self.assertEqual(written['rows'], [{'a': 1}])
    self.assertEqual(written['rounds'], 3)
    self.assertEqual(written['sizes'], sizes.ToJson())


if __name__ == '__main__':
  absltest.main()
