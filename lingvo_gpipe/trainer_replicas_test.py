"""Runs of the trainer with replicas of the pipeline, on logical devices."""

import contextlib
import io
import json
import os

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, step_log

_MODEL = f'{trainer_process.MODELS}.Named'
_OVERRIDE = 'train.ema.decay=0.9'


def setUpModule():
  placement.ConfigureLogicalCpus(4)


class TrainerReplicasTest(absltest.TestCase):
  def _Run(self, logdir, **options):
    options = flags.Options(
      model=_MODEL, logdir=logdir, model_params_override=_OVERRIDE, **options
    )
    options.Check()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      self.assertEqual(trainer.Run(options), 0)
    return output.getvalue()

  def _Log(self, logdir):
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def testReplicasMayChangeFromStartToStart(self):
    root = self.create_tempdir().full_path
    plain, mixed = os.path.join(root, 'plain'), os.path.join(root, 'mixed')
    self._Run(plain, num_partitions=1, num_micro_batches=4)

    two = {'num_partitions': 2, 'num_replicas': 2, 'num_micro_batches': 2}
    output = self._Run(mixed, max_steps=12, **two)
    self.assertIn('2 replicas', output)
    self._Run(mixed, max_steps=20, num_partitions=4, num_micro_batches=4)
    output = self._Run(mixed, **two)
    self.assertIn('restored ', output)

    logs = self._Log(plain), self._Log(mixed)
    self.assertLen(logs[1], len(logs[0]))
    for expected, actual in zip(*logs, strict=True):
      self.assertEqual(expected.keys(), actual.keys())
      for name, value in expected.items():
        # Sums in another order; float32.
        self.assertAlmostEqual(actual[name], value, delta=2e-4, msg=name)
    results = []
    for logdir in (plain, mixed):
      with open(os.path.join(logdir, 'results.json')) as f:
        results.append(json.load(f))
    self.assertIn('named', results[0]['test'])  # It was decoded.
    for dataset in ('dev', 'test'):  # By averages of the weights.
      for name, value in results[0][dataset].items():
        self.assertAlmostEqual(results[1][dataset][name], value, delta=2e-4)

  def testABatchThatReplicasCannotShare(self):
    options = flags.Options(
      model=_MODEL,
      logdir=self.create_tempdir().full_path,
      num_partitions=1,
      num_replicas=3,
    )
    with contextlib.redirect_stdout(io.StringIO()):
      with self.assertRaisesRegex(user_error.UserError, '--worker_replicas'):
        trainer.Run(options)


if __name__ == '__main__':
  absltest.main()
