"""Killed in mid-training and restarted, a run is the one that never broke."""

import contextlib
import io
import os
import signal

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process
from lingvo_gpipe.jobs import flags, step_log

_MODEL = f'{trainer_process.MODELS}.Tiny'
_OVERRIDE = 'train.save_interval_steps=15; train.log_interval_steps=5'
_MAX_STEPS = 300


def _Run(logdir):
  """In this process, to the last step."""
  options = flags.Options(
    model=_MODEL,
    logdir=logdir,
    num_partitions=2,
    max_steps=_MAX_STEPS,
    model_params_override=_OVERRIDE,
    eval_at_end=False,
  )
  with contextlib.redirect_stdout(io.StringIO()):
    assert trainer.Run(options) == 0


class TrainerKillTest(absltest.TestCase):
  def _Start(self, logdir):
    process = trainer_process.Start(
      f'--model={_MODEL}',
      f'--logdir={logdir}',
      '--worker_split_size=2',
      f'--max_steps={_MAX_STEPS}',
      # Else it may have ended before it is killed.
      f'--model_params_override={_OVERRIDE}; input.pause=0.03',
    )
    self.addCleanup(process.kill)
    return process

  def _Log(self, logdir):
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def testKilledTwiceEqualsUnbroken(self):
    root = self.create_tempdir().full_path
    broken, unbroken = os.path.join(root, 'a'), os.path.join(root, 'b')

    process = self._Start(broken)
    trainer_process.ReadToStep(process, 40)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    self.assertEqual(process.returncode, -signal.SIGKILL)
    with open(os.path.join(broken, 'train', 'metrics.jsonl')) as f:
      killed_at = len(f.readlines())
    self.assertBetween(killed_at, 40, _MAX_STEPS - 20)

    process = self._Start(broken)
    lines = trainer_process.ReadToStep(process, killed_at + 10)
    restored = [x for x in lines if x.startswith('restored ')]
    self.assertRegex(''.join(restored), r'^restored .*/ckpt-0\d+\n$')
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 143)
    self.assertRegex(
      stdout, r'(^|\n)stopped by SIGTERM at step \d+; saved .*/ckpt-\d+; .*\n$'
    )
    self.assertEqual(stderr, '')  # No notices of TensorFlow either.

    _Run(broken)
    _Run(unbroken)
    log = self._Log(broken)
    self.assertEqual([r['step'] for r in log], [*range(1, _MAX_STEPS + 1)])
    self.assertEqual(log, self._Log(unbroken))


if __name__ == '__main__':
  absltest.main()
