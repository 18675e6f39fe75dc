"""Runs of the trainer on worker processes, one of which is killed."""

import contextlib
import io
import json
import os
import re
import signal
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process, user_error
from lingvo_gpipe.gpipe import device_names, placement
from lingvo_gpipe.jobs import flags, step_log, train_program

_MODEL = f'{trainer_process.MODELS}.Tiny'
_OVERRIDE = (
  'train.ema.decay=0.9; eval.interval_steps=10; train.save_interval_steps=8; '
  # Tests kill workers milliseconds after a step that is saved.
  'train.log_interval_steps=4; train.save_in_background=False'
)


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Pids(lines):
  """Of the workers, from the trainer's output."""
  found = [re.match(r'worker \d+ at .*, process (\d+), core', x) for x in lines]
  return [int(match[1]) for match in found if match]


def _IsRunning(pid):
  return os.path.exists(f'/proc/{pid}')


class TrainerWorkersTest(absltest.TestCase):
  def _Run(self, logdir, **options):
    """(exit status, lines of stdout); the lines are kept in self.stdout."""
    options = flags.Options(
      model=_MODEL,
      logdir=logdir,
      model_params_override=_OVERRIDE,
      **options,
    )
    options.Check()
    self.stdout = io.StringIO()
    with contextlib.redirect_stdout(self.stdout):
      status = trainer.Run(options)
    return status, self.stdout.getvalue().splitlines()

  def _RunOnWorkers(self, logdir, *args):
    """Lines of stdout of a whole run, in a process of its own.

    To be the client of several clusters, one after the other, is not for the
    trainer.
    """
    process = trainer_process.Start(
      f'--model={_MODEL}',
      f'--logdir={logdir}',
      f'--model_params_override={_OVERRIDE}',
      '--local_workers=2',
      *args,
    )
    self.addCleanup(process.kill)
    stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 0, stderr)
    return stdout.splitlines()

  def _Log(self, logdir):
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def _KillWorkerBefore(self, step):
    """Kills worker 1 when the trainer fetches batch `step`."""
    fetch = train_program.TrainProgram._Next

    def _Next(program):
      if program.step == step:
        pid = _Pids(self.stdout.getvalue().splitlines())[1]
        os.kill(pid, signal.SIGKILL)
      return fetch(program)

    return mock.patch.object(train_program.TrainProgram, '_Next', _Next)

  def testKilledAndResumedEqualsLogicalDevices(self):
    root = self.create_tempdir().full_path
    logical = os.path.join(root, 'logical')
    broken = os.path.join(root, 'broken')
    status, expected = self._Run(logical, num_partitions=2)
    self.assertEqual(status, 0)

    with self._KillWorkerBefore(22):
      with self.assertRaisesRegex(
        user_error.TrainingError,
        r'^worker 1 \(127.0.0.1:\d+, process \d+\) was ended by SIGKILL, .*; '
        rf'its log {broken}/workers/worker_1.log .*\. The same command goes on '
        'from the last checkpoint$',
      ) as caught:
        self._Run(broken, local_workers=2)
    self.assertEqual(caught.exception.EXIT_STATUS, 1)
    lines = self.stdout.getvalue().splitlines()
    self.assertEqual(
      lines[2], f'devices {", ".join(device_names.WorkerDevices(2))}'
    )
    self.assertLen(_Pids(lines), 2)
    self.assertFalse(any(map(_IsRunning, _Pids(lines))))

    lines = self._RunOnWorkers(broken)
    # The dev evaluation of step 20 was the best one, so it was saved.
    self.assertIn(f'restored {broken}/train/ckpt-00000020', lines)
    self.assertFalse(any(map(_IsRunning, _Pids(lines))))

    # To the last bit, with averages, evaluation and a checkpoint in between.
    self.assertEqual(self._Log(broken), self._Log(logical))
    self.assertEqual(lines[-4:], expected[-4:])
    results = []
    for logdir in (logical, broken):
      with open(os.path.join(logdir, 'results.json')) as f:
        results.append(json.load(f))
    self.assertEqual(results[0]['dev'], results[1]['dev'])
    self.assertEqual(results[0]['test'], results[1]['test'])
    for place in ('train', 'eval_dev', 'eval_test'):
      events = os.listdir(os.path.join(broken, place))
      self.assertTrue([x for x in events if 'tfevents' in x])

  def testTheFirstStepsAreReportedAndDrawn(self):
    logdir = self.create_tempdir().full_path
    lines = self._RunOnWorkers(logdir, '--timeline', '--max_steps=8')
    text = '\n'.join(lines)
    self.assertRegex(text, r'Bubble: measured [\d.]+%, predicted [\d.]+%')
    with open(os.path.join(logdir, 'step_report.json')) as f:
      report = json.load(f)
    self.assertLen(report['partitions'], 2)
    with open(os.path.join(logdir, 'timeline.json')) as f:
      events = json.load(f)['events']
    # Forward and backward of each micro-batch, and some recomputation.
    self.assertGreaterEqual(len(events), 4)
    devices = step_log.Read(os.path.join(logdir, 'train', 'devices.jsonl'))
    for record in (devices[3], devices[7]):
      self.assertBetween(record['bubble'], 0.0, 1.0)
      for name in ('trainer', 'worker_0', 'worker_1'):
        # TensorFlow itself takes more than 100 MiB.
        self.assertBetween(record[f'memory_mib/{name}'], 100, 20000)
    for name in ('timeline.png', 'timeline_trace.json'):
      self.assertGreater(os.path.getsize(os.path.join(logdir, name)), 1000)

  def testStoppedBySigterm(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    process = trainer_process.Start(
      f'--model={_MODEL}',
      f'--logdir={logdir}',
      '--local_workers=2',
      '--worker_memory=2G',
      '--max_steps=100000',
      f'--model_params_override={_OVERRIDE}',
    )
    self.addCleanup(process.kill)
    lines = trainer_process.ReadToStep(process, 4)
    pids = _Pids(lines)
    self.assertLen(pids, 2)
    self.assertTrue(all(map(_IsRunning, pids)))
    # As by a shell or a job scheduler, to all processes.
    for pid in (*pids, process.pid):
      os.kill(pid, signal.SIGTERM)
    stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 143)
    self.assertRegex(stdout, r'(^|\n)stopped by SIGTERM at step \d+; saved ')
    cores_warning = r'(W.*2 workers share 1 cores.*\n)?'
    self.assertRegex(stderr, rf'^{cores_warning}$')
    self.assertFalse(any(map(_IsRunning, pids)))

  def testInspectionNeedsNoWorkers(self):
    with mock.patch(
      'lingvo_gpipe.workers.local_workers.LocalWorkers',
      side_effect=AssertionError,
    ):
      status, lines = self._Run('', mode='inspect_model', local_workers=3)
      self.assertEqual(status, 0)
      self.assertIn('4 cells in 3 partitions', '\n'.join(lines))
      status, lines = self._Run('', mode='inspect_params', local_workers=3)
      self.assertIn('net.num_partitions : 3', lines)


if __name__ == '__main__':
  absltest.main()
