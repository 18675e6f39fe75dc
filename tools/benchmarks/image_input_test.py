"""Tests of image_input, the benchmark."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process


class ImageInputTest(absltest.TestCase):
  def testTable(self):
    path = os.path.join(self.create_tempdir().full_path, 'input.json')
    done = tool_process.Run(
      'image_input',
      '--pictures=12',
      '--batch=4',
      '--image_size=32',
      '--seconds=0.1',
      '--rounds=1',
      f'--output={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    heading, *lines = done.stdout.splitlines()
    self.assertRegex(heading, r'^source +transforms +images/s$')
    self.assertLen(lines, 6)
    self.assertIn('round 1/1', done.stderr)
    with open(path) as f:
      written = json.load(f)
    self.assertBetween(written['bytes_per_picture'], 50_000, 80_000)
    for row in written['rows']:
      self.assertLen(row['all_images_per_second'], 1)
      self.assertGreater(min(row['all_images_per_second']), 1.0)
    self.assertEqual(
      [row['source'] for row in written['rows']], ['folder'] * 3 + ['tfds'] * 3
    )

  def testHelp(self):
    done = tool_process.Run('image_input', '--help')
    self.assertEqual(done.returncode, 0)
    self.assertIn('--seconds', done.stdout)


if __name__ == '__main__':
  absltest.main()
