"""Runs of the trainer on worker processes in which something goes wrong."""

import contextlib
import io
import os
import re
import resource
import signal
import tempfile
import threading
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import (
  trainer,
  trainer_in_process,
  trainer_process,
  user_error,
)
from lingvo_gpipe.gpipe import device_names, placement
from lingvo_gpipe.jobs import flags, step_log
from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  checkpoint_integrity,
)

_OVERRIDE = 'train.save_interval_steps=8; train.log_interval_steps=2'
_BURSTING = 'train.max_nonfinite_steps=4; net.splits=[2, 2]'
_LONG_ENOUGH = 120  # Seconds until something has to be wrong.


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Options(logdir, override='', model='Tiny', **options):
  return flags.Options(
    model=f'{trainer_process.MODELS}.{model}',
    logdir=logdir,
    model_params_override=f'{_OVERRIDE}; {override}',
    eval_at_end=False,
    **options,
  )


def _Run(stdout, *args, **kwargs):
  """Exit status of a run in this process."""
  with contextlib.redirect_stdout(stdout):
    return trainer.Run(_Options(*args, **kwargs))


def _Start(*args, **kwargs):
  """A process that does the same on workers.

  A process that becomes the client of other workers for a second time is not
  what is tested here.
  """
  options = _Options(*args, **kwargs)
  return trainer_process.Start(
    f'--model={options.model}',
    f'--logdir={options.logdir}',
    f'--model_params_override={options.model_params_override}',
    '--noeval_at_end',
    '--local_workers=2',
  )


def _Told(stdout, error):
  """Lines of skipped steps and the error in the end, devices left out."""
  lines = stdout.splitlines()
  told = [x for x in lines if x.startswith('step ') and ' was skipped: ' in x]
  return [re.sub(r' on \S+CPU:\d', '', x) for x in [*told, error]]


def _Log(logdir):
  return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))


class TrainerWorkersFaultsTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    """The same in one process, before it becomes the client of workers."""
    super().setUpClass()
    with tempfile.TemporaryDirectory() as root:
      cls.stdout = io.StringIO()
      tiny = os.path.join(root, 'tiny')
      assert _Run(cls.stdout, tiny, num_partitions=2) == 0
      cls.log = _Log(tiny)
      try:
        _Run(
          cls.stdout,
          os.path.join(root, 'bursting'),
          _BURSTING,
          'Bursting',
          num_partitions=2,
        )
        raise AssertionError('no error')
      except user_error.TrainingError as e:
        cls.told = _Told(cls.stdout.getvalue(), str(e))

  def setUp(self):
    super().setUp()
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    self._train_dir = os.path.join(self._logdir, 'train')

  def _Prefix(self, step):
    return checkpoint_files.Prefix(self._train_dir, step)

  def testStoppedWhileACheckpointIsWrittenAndOneDiskIsFull(self):
    stdout, write = io.StringIO(), checkpoint.Checkpointer.SaveSnapshot
    begun, stopped = threading.Event(), threading.Event()

    def _Slow(self, step, *args):
      if step == 8:
        begun.set()
        assert stopped.wait(_LONG_ENOUGH)
      return write(self, step, *args)

    def _Stop():
      self.assertTrue(begun.wait(_LONG_ENOUGH))
      self.assertIsNone(checkpoint_files.Latest(self._train_dir))
      signal.raise_signal(signal.SIGTERM)
      # Step 12 can be done before step 8 is on the disk.
      threading.Timer(1.0, stopped.set).start()

    with mock.patch.object(checkpoint.Checkpointer, 'SaveSnapshot', _Slow):
      with trainer_in_process.Before(11, _Stop):
        status = _Run(stdout, self._logdir, local_workers=2)
    self.assertEqual(status, 143)
    self.assertIn(
      f'stopped by SIGTERM at step 12; saved {self._Prefix(12)}; ',
      stdout.getvalue(),
    )
    self.assertEqual(
      checkpoint_files.Checkpoints(self._train_dir),
      [self._Prefix(8), self._Prefix(12)],
    )
    # Both hold the values of their steps: go on from the first one.
    checkpoint_files.Delete(self._Prefix(12))

    # Worker 1 cannot write, until the checkpoint of step 16 has failed.
    process = _Start(self._logdir, 'input.pause=0.1')
    self.addCleanup(process.kill)
    told, pid, limits = [], None, None
    for line in process.stdout:
      if line.startswith('worker 1 at '):
        pid = int(re.search(r' process (\d+)', line)[1])
        limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16, limits[1]))
      elif line.startswith('restored '):
        self.assertEqual(line, f'restored {self._Prefix(8)}\n')
      elif line.startswith('warning: '):
        told.append(line)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    unused_stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 0, stderr)
    self.assertRegex(
      told[0],
      f'^warning: cannot save the checkpoint {self._Prefix(16)}: '
      rf'{self._train_dir}/\.tmp-ckpt-[^;:]*; File too large; '
      rf'the newest complete one is {self._Prefix(8)}\. Training goes on',
    )
    self.assertEqual(_Log(self._logdir), self.log)
    checkpoint_integrity.Verify(self._Prefix(30))

  def testTheSameCellIsNamedAsInOneProcess(self):
    process = _Start(self._logdir, _BURSTING, 'Bursting')
    self.addCleanup(process.kill)
    stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 1, stderr)
    error = [x for x in stderr.splitlines() if x.startswith('error: ')]
    told = _Told(stdout, error[0].removeprefix('error: '))
    self.assertEqual(told, self.told)
    cell = 'cell 2 (tiny/net/second, Bursts) of partition 1'
    self.assertEqual(
      told[0],
      'step 5 was skipped: the first outputs that are not finite are those of '
      f'{cell}, in micro-batch 2',
    )
    second = (
      f'all outputs are finite, but gradients are not, first those of {cell}: '
    )
    self.assertStartsWith(told[1], f'step 12 was skipped: {second}')
    self.assertIn(second, told[2])
    worker_1 = device_names.WorkerDevices(2)[1]
    self.assertIn(f'{cell} on {worker_1}, in micro', stdout)


if __name__ == '__main__':
  absltest.main()
