"""Tests of fault_injection: some faults, for real."""

import json
import os

from absl.testing import absltest

from tools.benchmarks import tool_process


class FaultInjectionTest(absltest.TestCase):
  def testKills(self):
    output = os.path.join(self.create_tempdir().full_path, 'faults.json')
    result = tool_process.Run(
      'fault_injection',
      '--model=lingvo_gpipe.trainer_test_models.Tiny',
      '--model_params_override=eval.interval_steps=0',
      '--num_workers=1',
      '--moments=forward',
      '--kinds=kill',
      '--save_steps=100',
      f'--output={output}',
    )
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    self.assertRegex(
      result.stdout, r'\n2 faults in \d+ steps. The log of all steps is that of'
    )
    with open(output) as f:
      written = json.load(f)
    self.assertTrue(written['equal'])
    victims = {fault['victim']: fault for fault in written['faults']}
    self.assertEqual(set(victims), {'trainer', 0})
    # Only the worker's end is noticed by the trainer.
    self.assertIsNone(victims['trainer']['noticed'])
    self.assertBetween(victims[0]['noticed'], 0.0, 60.0)
    for fault in written['faults']:
      self.assertGreater(fault['training_again'], 0.0)
    (row,) = written['rows']
    self.assertEqual(
      (row['fault'], row['count'], row['restarts']), ('kill, forward', 2, 1)
    )

  def testMistakes(self):
    for args, message in (
      (['--kinds=cut'], 'needs --emulated_hosts'),
      (['--kinds=bite'], 'bite is none of kill, stop, cut'),
      (['--moments=tea'], 'tea is none of start'),
    ):
      result = tool_process.Run('fault_injection', *args)
      self.assertEqual(result.returncode, 2)
      self.assertIn(message, result.stderr)


if __name__ == '__main__':
  absltest.main()
