"""Tests of soak: seconds of it, for real."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import soak, tool_process


class SoakTest(absltest.TestCase):
  def testSeconds(self):
    output = os.path.join(self.create_tempdir().full_path, 'soak.json')
    result = tool_process.Run(
      'soak',
      '--model=lingvo_gpipe.trainer_test_models.Tiny',
      '--model_params_override=',
      '--num_workers=1',
      '--minutes=0.1',
      '--sample_seconds=1',
      '--save_steps=50',
      '--eval_steps=100',
      f'--output={output}',
    )
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    self.assertRegex(
      result.stdout, r'growth .* MiB an hour: trainer -?[\d.]+, worker 0 -?[\d]'
    )
    with open(output) as f:
      written = json.load(f)
    self.assertEqual(set(written['growth']), {'trainer', 'worker 0'})
    samples = written['samples']
    self.assertGreater(samples[-1]['step'], samples[0]['step'])
    self.assertGreater(samples[-1]['cpu'], samples[0]['cpu'])
    # A process that runs TensorFlow has more than this.
    self.assertGreater(samples[0]['worker 0'], 100 * 2**20)

  def testTenths(self):
    samples = [
      {'time': 60.0 * i, 'step': 10 * i, 'cpu': 5.0 * i, 'a': 100 + i}
      for i in range(21)
    ]
    rows = soak._Parts(samples, ['a'])
    self.assertLen(rows, 10)
    self.assertEqual(rows[0]['minutes'], 2.0)
    self.assertEqual(rows[-1]['step'], 200)
    for i, row in enumerate(rows):
      self.assertAlmostEqual(row['per_second'], 10 / 60)
      self.assertAlmostEqual(row['cpu_per_step'], 0.5)
      self.assertEqual(row['a'], 101 + 2 * i)
    self.assertAlmostEqual(soak._Growth(samples, 'a'), 60.0)


if __name__ == '__main__':
  absltest.main()
