"""What training outlives, and when it ends before its last step."""

import contextlib
import errno
import glob
import io
import os
import resource
import shutil
import signal
import time
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import (
  trainer,
  trainer_in_process,
  user_error,
)
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, step_log
from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity

_LOG = 'train/metrics.jsonl'
_MODEL = 'lingvo_gpipe.trainer_test_models.Tiny'

# No evaluation after the first is better: the weights stay almost the same.
_EARLY = (
  'eval.interval_steps=3; eval.early_stop_evals=2; '
  'train.learner.learning_rate=1e-30; train.log_interval_steps=3'
)


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class TrainerRobustnessTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')

  def _Run(self, override, **options):
    """Exit status; the lines of stdout are in self._lines, also on errors."""
    stdout = self._stdout = io.StringIO()
    options.setdefault('eval_at_end', False)
    try:
      with contextlib.redirect_stdout(stdout):
        return trainer.Run(
          flags.Options(
            model=_MODEL,
            logdir=self._logdir,
            model_params_override=override,
            **options,
          )
        )
    finally:
      self._lines = stdout.getvalue().splitlines()

  def _Await(self, condition):
    deadline = time.monotonic() + 60
    while not condition():
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.01)

  def _Log(self):
    return step_log.Read(os.path.join(self._logdir, _LOG))

  def _Last(self):
    return self._Log()[-1]['step']

  def _SummarySteps(self, folder):
    """The steps in the event files of a folder, each once, ascending."""
    paths = glob.glob(os.path.join(self._logdir, folder, '*tfevents*'))
    steps = {
      tf.compat.v1.Event.FromString(record).step
      for path in paths
      for record in tf.data.TFRecordDataset(path).as_numpy_iterator()
    }
    return sorted(steps - {0})

  def testEarlyStoppingGoesOnCounting(self):
    with trainer_in_process.Before(
      6, lambda: signal.raise_signal(signal.SIGTERM)
    ):
      self.assertEqual(self._Run(_EARLY), 143)
    self.assertEqual(self._Last(), 7)
    self.assertEqual(self._Run(_EARLY, eval_at_end=True), 0)
    # Evaluations of steps 3, 6 and 9: two of them without a new best.
    self.assertEqual(self._Last(), 9)
    self.assertRegex(
      '\n'.join(self._lines),
      'training ends at step 9: 2 evaluations without a better dev accuracy '
      r'than [\d.]+ of step 3 \(eval.early_stop_evals\)',
    )
    self.assertStartsWith(self._lines[-1], 'test accuracy: ')
    self.assertEqual(self._Run(_EARLY), 0)
    self.assertEqual(self._Last(), 9)
    self.assertIn('nothing to train: step 9, ', '\n'.join(self._lines))

  def testTheDiskIsFullForAWhile(self):
    override = (
      'train.log_interval_steps=2; train.save_interval_steps=4; '
      'eval.interval_steps=10'
    )
    self.assertEqual(self._Run(override, eval_at_end=True), 0)
    expected, results = self._Log(), self._lines[-4:]
    summaries = [self._SummarySteps(x) for x in ('train', 'eval_dev')]
    self._logdir += '_full'
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)

    def _IsFull():
      good = os.path.join(self._logdir, 'train', 'ckpt-00000008.json')
      self._Await(lambda: os.path.exists(good))
      # No file may become larger; metrics.jsonl still takes part of a line.
      size = os.path.getsize(os.path.join(self._logdir, _LOG)) + 20
      resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))

    def _HasRoom():
      self._Await(lambda: 'train/ckpt-00000020: ' in self._stdout.getvalue())
      self.assertEqual([x['step'] for x in self._Log()], [*range(1, 9)])
      resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with (
      trainer_in_process.Before(9, _IsFull),
      trainer_in_process.Before(21, _HasRoom),
    ):
      self.assertEqual(self._Run(override, eval_at_end=True), 0)
    told = [x for x in self._lines if x.startswith('warning: ')]
    saving = [x for x in told if x.startswith('warning: cannot save the check')]
    writing = [x for x in told if x.startswith('warning: cannot write ')]
    self.assertLen(told, len(saving) + len(writing))
    # That of step 10 has the best metrics so far.
    for step, line in zip((10, 12, 16, 20), saving, strict=True):
      self.assertRegex(
        line,
        rf'{self._logdir}/train/ckpt-000000{step}: .*File too large; the '
        rf'newest complete one is {self._logdir}/train/ckpt-00000008\. ',
      )
    self.assertIn('cannot write the log of steps', ''.join(writing))
    self.assertIn('cannot write summaries', ''.join(writing))
    for line in writing:
      self.assertRegex(line, rf"File too large: '{self._logdir}/.*; training ")
    self.assertLen(set(writing), len(writing))

    # Nothing is missing afterwards.
    self.assertEqual(self._Log(), expected)
    self.assertEqual(self._lines[-4:], results)
    prefix = os.path.join(self._logdir, 'train', 'ckpt-00000030')
    checkpoint_integrity.Verify(prefix)
    self.assertEqual(checkpoint_files.Latest(os.path.dirname(prefix)), prefix)
    for folder, steps in zip(('train', 'eval_dev'), summaries, strict=True):
      self.assertEqual(self._SummarySteps(folder), steps)
    self.assertFalse([x for x in os.listdir(self._logdir) if x[0] == '.'])

  def testThereIsNoDiskAtTheStart(self):
    with mock.patch.object(
      os, 'fsync', side_effect=OSError(errno.ENOSPC, 'No space left on device')
    ):
      with self.assertRaisesRegex(
        user_error.UserError,
        f"cannot write to --logdir: .*space left.*'{self._logdir}/params.txt'",
      ):
        self._Run('')

  def testTheLogdirIsDeleted(self):
    override = (
      'train.log_interval_steps=2; train.save_interval_steps=4; '
      # Else it is deleted while the checkpoint of step 8 is written.
      'train.save_in_background=False'
    )
    with trainer_in_process.Before(9, lambda: shutil.rmtree(self._logdir)):
      self.assertEqual(self._Run(override, max_steps=14), 0)
    lines = '\n'.join(self._lines)
    self.assertRegex(
      lines, rf"cannot write the log of steps: .*: '{self._logdir}/{_LOG}'; "
    )
    self.assertNotIn('cannot save', lines)
    self.assertEqual([x['step'] for x in self._Log()], [*range(9, 15)])
    self.assertEqual(self._SummarySteps('train'), [10, 12, 14])
    self.assertEqual(self._Run(override, max_steps=16), 0)
    self.assertIn(
      f'restored {self._logdir}/train/ckpt-00000014', '\n'.join(self._lines)
    )
    self.assertEqual([x['step'] for x in self._Log()], [*range(9, 17)])

  def testTheLogdirIsReplacedByAFile(self):
    def _Replace():
      shutil.rmtree(self._logdir)
      with open(self._logdir, 'w') as f:
        f.write('in the way')

    with trainer_in_process.Before(5, _Replace):
      with self.assertRaisesRegex(
        user_error.TrainingError, 'last checkpoint of the run could not be wri'
      ) as caught:
        self._Run(
          'train.log_interval_steps=3; train.save_interval_steps=4; '
          # Else it is deleted while a checkpoint is written.
          'train.save_in_background=False',
          max_steps=12,
        )
    self.assertEqual(caught.exception.EXIT_STATUS, 1)
    lines = '\n'.join(self._lines)
    self.assertIn('step 12/12 loss', lines)
    self.assertEqual(lines.count('cannot write the log of steps'), 1)
    self.assertIn('warning: cannot save the checkpoint', lines)

  def testWhereItIsNotFinite(self):
    with self.assertRaisesRegex(
      user_error.TrainingError,
      'of step 5 are not finite.*mini-batch itself is not finite, in inputs',
    ):
      self._Run('input.nan_from=4; train.nonfinite="stop"', num_partitions=2)
    self.assertEqual(self._Last(), 5)
    told = [x for x in self._lines if x.startswith('step 5 was skipped: ')]
    self.assertLen(told, 1)

  def testImpossibleWishes(self):
    for override, message in (
      ('eval.early_stop_evals=2', 'set eval.interval_steps'),
      ('train.nonfinite="go on"', 'neither "skip" nor "stop"'),
      ('train.save_keep_every_steps=-1', 'must be 0 or more'),
    ):
      with self.assertRaisesRegex(user_error.UserError, message):
        self._Run(override)


if __name__ == '__main__':
  absltest.main()
