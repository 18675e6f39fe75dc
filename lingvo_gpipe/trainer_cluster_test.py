"""The trainer on a cluster of worker processes that die, hang and come back."""

import contextlib
import io
import json
import os
import re
import signal

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, step_log
from lingvo_gpipe.workers import free_ports

_MODEL = f'{trainer_process.MODELS}.Tiny'
_OVERRIDE = (
  'train.save_interval_steps=50; train.log_interval_steps=10; '
  # A checkpoint is complete soon after its step, whatever dies next.
  'train.save_in_background=False'
)
_MAX_STEPS = 600


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class TrainerClusterTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path
    ports = free_ports.FreePorts(2)
    self._hosts = f'--worker_hosts={",".join(f"localhost:{p}" for p in ports)}'
    self._workers = [
      self._Start('--job=worker', f'--worker_task={k}', '--worker_threads=1')
      for k in range(2)
    ]

  def _Start(self, *args):
    process = trainer_process.Start(self._hosts, *args)
    self.addCleanup(process.stdout.close)
    self.addCleanup(process.stderr.close)
    self.addCleanup(process.wait)
    self.addCleanup(process.kill)
    return process

  def _StartTrainer(self, logdir):
    return self._Start(
      f'--model={_MODEL}',
      f'--logdir={logdir}',
      f'--max_steps={_MAX_STEPS}',
      # Else it may have ended before anything dies.
      f'--model_params_override={_OVERRIDE}; input.pause=0.01',
      '--worker_lost_seconds=4',
      '--noeval_at_end',
    )

  def _ServerPid(self, k):
    """Of the next server that worker k tells of."""
    for line in self._workers[k].stdout:
      match = re.search(r'listens at .*, process (\d+)$', line)
      if match:
        return int(match[1])
    raise AssertionError(f'worker {k} has ended')

  def _Unbroken(self):
    """The log of a run in this process, on logical devices."""
    logdir = os.path.join(self._root, 'unbroken')
    options = flags.Options(
      model=_MODEL,
      logdir=logdir,
      num_partitions=2,
      max_steps=_MAX_STEPS,
      model_params_override=_OVERRIDE,
      eval_at_end=False,
    )
    with contextlib.redirect_stdout(io.StringIO()):
      self.assertEqual(trainer.Run(options), 0)
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def testNothingIsLostWhateverDies(self):
    logdir = os.path.join(self._root, 'broken')
    process = self._StartTrainer(logdir)
    pids = [self._ServerPid(k) for k in range(2)]
    trainer_process.ReadToStep(process, 70)

    # A worker's server dies; its parent starts another one.
    os.kill(pids[1], signal.SIGKILL)
    lines = trainer_process.ReadToStep(process, 120)
    lost = [x for x in lines if x.startswith('lost: ')]
    self.assertLen(lost, 1)
    self.assertRegex(
      lost[0],
      r'^lost: (worker 1 at localhost:\d+ |the connection to a worker broke: )'
      r'.*; restart 1 of 10 without progress, from .*/ckpt-00000\d\d0$',
    )
    self.assertIn('restored ', ''.join(lines))
    self.assertNotEqual(self._ServerPid(1), pids[1])

    # A worker stands still, while the trainer waits for it.
    os.kill(pids[0], signal.SIGSTOP)
    lines = []
    for line in process.stdout:
      lines.append(line)
      if line.startswith('lost: '):
        break
    self.assertRegex(
      lines[-1], r'^lost: worker 0 at localhost:\d+ has not answered for '
    )
    os.kill(pids[0], signal.SIGCONT)
    step = len(self._Log(logdir))
    trainer_process.ReadToStep(process, step + 30)

    # The trainer itself dies; another one goes on with the same workers.
    process.kill()
    process.wait()
    self.assertLess(len(self._Log(logdir)), _MAX_STEPS)
    process = self._StartTrainer(logdir)
    output, errors = process.communicate()
    self.assertEqual(process.returncode, 0, errors)
    self.assertRegex(output, r'\nrestored .*/ckpt-0')

    log = self._Log(logdir)
    self.assertEqual([r['step'] for r in log], [*range(1, _MAX_STEPS + 1)])
    self.assertEqual(log, self._Unbroken())
    devices = step_log.Read(os.path.join(logdir, 'train', 'devices.jsonl'))
    for name in ('trainer', 'worker_0', 'worker_1'):
      self.assertBetween(devices[-1][f'memory_mib/{name}'], 100, 20000)
    with open(os.path.join(logdir, 'restarts.jsonl')) as f:
      reasons = [json.loads(line)['reason'] for line in f]
    self.assertLen(reasons, 2)

  def _Log(self, logdir):
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def testIdleWorkersAreAnError(self):
    process = self._Start(
      f'--model={_MODEL}',
      f'--logdir={self._root}/idle',
      '--worker_split_size=1',
    )
    _, errors = process.communicate()
    self.assertEqual(process.returncode, 2)
    self.assertRegex(
      errors,
      r'1 of 2 devices of --worker_hosts would stay idle '
      r'\(/job:worker/replica:0/task:1/device:CPU:0\)',
    )


if __name__ == '__main__':
  absltest.main()
