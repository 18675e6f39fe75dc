"""A trainer and an evaler at work on the same directory at the same time."""

import json
import os
import signal

from absl.testing import absltest

from lingvo_gpipe import trainer_process

_MAX_STEPS = 400


class TrainerEvalerTest(absltest.TestCase):
  def _Start(self, *args):
    process = trainer_process.Start(
      f'--model={trainer_process.MODELS}.Tiny',
      f'--logdir={self._logdir}',
      *args,
    )
    self.addCleanup(process.kill)
    return process

  def _Results(self, lines):
    return [x for x in lines if x.startswith(('dev ', 'test '))]

  def testBothAtOnce(self):
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    # It starts before there is anything to evaluate.
    evaler = self._Start('--job=evaler')
    job = self._Start(
      f'--max_steps={_MAX_STEPS}',
      '--saver_max_to_keep=1',
      '--model_params_override=train.save_interval_steps=10; '
      'eval.best_metric=""',
    )
    outputs = [process.communicate() for process in (job, evaler)]
    self.assertEqual([process.returncode for process in (job, evaler)], [0, 0])
    self.assertEqual([stderr for unused, stderr in outputs], ['', ''])
    trained, evaluated = [stdout.splitlines() for stdout, unused in outputs]
    self.assertLen(self._Results(trained), 4)
    self.assertEqual(self._Results(evaluated), self._Results(trained))
    with open(f'{self._logdir}/eval_test/evaluated.jsonl') as f:
      steps = [json.loads(line)['step'] for line in f]
    self.assertEqual(steps, sorted(set(steps)))
    self.assertEqual(steps[-1], _MAX_STEPS)
    # The trainer's own files are as it left them.
    names = os.listdir(f'{self._logdir}/train')
    self.assertEqual(
      [x for x in names if x.endswith('.json')], [f'ckpt-{_MAX_STEPS:08d}.json']
    )

  def testSigtermWhileWaiting(self):
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    evaler = self._Start('--job=evaler')
    for line in evaler.stdout:
      if line.startswith('waiting for the first checkpoint in '):
        evaler.send_signal(signal.SIGTERM)
        break
    stdout, stderr = evaler.communicate()
    self.assertEqual(evaler.returncode, 143, stderr)
    self.assertStartsWith(stdout, 'stopped by SIGTERM; nothing is evaluated')
    self.assertFalse(os.path.exists(self._logdir))


if __name__ == '__main__':
  absltest.main()
