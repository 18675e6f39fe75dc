"""Tests of evaler_job, each with checkpoints of one short run."""

import contextlib
import io
import json
import os
import shutil
import signal
import threading
import time
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import eval_flags, flags
from lingvo_gpipe.train import checkpoint, checkpoint_files

_MODEL = f'{trainer_process.MODELS}.Tiny'


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Run(logdir, *, job='evaler', evaluation=None, **options):
  """(exit status, lines of stdout after the plan)."""
  options = flags.Options(
    model=_MODEL,
    logdir=logdir,
    job=job,
    evaluation=eval_flags.EvalOptions(**evaluation or {}),
    **options,
  )
  options.Check()
  stdout = io.StringIO()
  with contextlib.redirect_stdout(stdout):
    status = trainer.Run(options)
  lines = stdout.getvalue().splitlines()
  start = [i for i, x in enumerate(lines) if ' trainable and ' in x]
  return status, lines[start[0] + 1 :]


class EvalerTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._trained = os.path.join(absltest.get_default_test_tmpdir(), 'trained')
    _Run(
      cls._trained,
      job='trainer',
      max_steps=15,  # The model says 30.
      eval_at_end=False,
      model_params_override='train.save_interval_steps=5',
    )

  def setUp(self):
    super().setUp()
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    self._threads = []
    self._done = False

  def tearDown(self):
    self._done = True
    for thread in self._threads:
      thread.join()
    super().tearDown()

  def _Copy(self, *steps):
    """Puts checkpoints into the run, as a trainer does: the JSON file last."""
    folder = os.path.join(self._logdir, 'train')
    os.makedirs(folder, exist_ok=True)
    for step in steps:
      source = checkpoint_files.Prefix(
        os.path.join(self._trained, 'train'), step
      )
      for path in reversed(checkpoint_files.Files(source)):
        temporary = os.path.join(folder, '.copy')
        shutil.copy(path, temporary)
        os.replace(temporary, os.path.join(folder, os.path.basename(path)))

  def _Prefix(self, step):
    return checkpoint_files.Prefix(os.path.join(self._logdir, 'train'), step)

  def _History(self, dataset='test'):
    path = os.path.join(self._logdir, f'eval_{dataset}', 'evaluated.jsonl')
    if not os.path.exists(path):
      return []
    with open(path) as f:
      return [json.loads(line)['step'] for line in f]

  def _Results(self):
    with open(os.path.join(self._logdir, 'results.json')) as f:
      return json.load(f)

  def _Files(self):
    return {
      os.path.relpath(os.path.join(folder, name), self._logdir)
      for folder, unused, names in os.walk(self._logdir)
      for name in names
    }

  def _When(self, condition, action):
    """Does something, beside the evaler, as soon as a condition holds."""

    def _Wait():
      while not self._done:
        if condition():
          action()
          return
        time.sleep(0.01)

    self._threads.append(threading.Thread(target=_Wait))
    self._threads[-1].start()

  def testFollowsARunToItsLastStep(self):
    self._When(lambda: True, lambda: self._Copy(5))
    self._When(lambda: self._History() == [5], lambda: self._Copy(10))
    self._When(lambda: self._History() == [5, 10], lambda: self._Copy(15))
    status, lines = _Run(self._logdir)
    self.assertEqual(status, 0)
    if lines[0].startswith('waiting for the first checkpoint'):
      lines = lines[1:]
    folder = os.path.join(self._logdir, 'train')
    self.assertEqual(lines[0], f'restored {self._Prefix(5)}')
    # Only where a checkpoint is not there at once.
    self.assertContainsSubset(
      [x for x in lines if x.startswith('waiting')],
      [
        f'waiting for a checkpoint after step {s} of 15 in {folder}'
        for s in (5, 10)
      ],
    )
    evaluated = [x for x in lines if x.endswith('examples/s')]
    self.assertLen(evaluated, 6)
    for line, (step, dataset) in zip(
      evaluated,
      [(s, d) for s in (5, 10, 15) for d in ('dev', 'test')],
      strict=True,
    ):
      self.assertRegex(
        line,
        rf'^step {step} {dataset} loss \d\.\d{{4}} accuracy [01]\.\d{{4}} '
        r'[\d.]+ examples/s$',
      )
    results = self._Results()
    self.assertEqual(results['global_step'], 15)
    accuracy = results['test_accuracy']
    self.assertEqual(lines[-1], f'test accuracy: {accuracy:.4f}')
    self.assertEqual(self._History('dev'), [5, 10, 15])

  def testARestartDoesNothingAgain(self):
    self._Copy(5, 10, 15)
    status, lines = _Run(self._logdir)
    self.assertEqual(status, 0)
    self.assertEqual(self._History(), [15])
    before = self._Files()
    with mock.patch.object(checkpoint.Checkpointer, 'Restore') as restore:
      status, again = _Run(self._logdir)
    restore.assert_not_called()
    self.assertEqual(status, 0)
    self.assertRegex(again[0], r'^step 15 dev loss .*, evaluated before$')
    self.assertEqual(again[-4:], lines[-4:])
    self.assertEqual(self._Files(), before)

  def testWritesNothingOfTheTrainers(self):
    self._Copy(15)
    before = self._Files()
    _Run(self._logdir)
    new = self._Files() - before
    events = {x for x in new if 'tfevents' in x}
    self.assertLen(events, 2)
    for path in events:
      self.assertRegex(path, r'^eval_(dev|test)/.*\.evaler$')
    self.assertEqual(
      new - events,
      {
        'results.json',
        'eval_dev/evaluated.jsonl',
        'eval_test/evaluated.jsonl',
      },
    )

  def testResultsOfALaterStepStay(self):
    self._Copy(5, 10)
    with open(os.path.join(self._logdir, 'results.json'), 'w') as f:
      json.dump({'global_step': 11}, f)
    _Run(self._logdir, evaluation={'once': True})
    self.assertEqual(self._Results(), {'global_step': 11})

  def testAll(self):
    self._Copy(5, 10)
    status, lines = _Run(self._logdir, evaluation={'all': True})
    self.assertEqual(status, 0)
    self.assertEqual(self._History(), [5, 10])
    self.assertEqual(self._Results()['global_step'], 10)
    self._Copy(15)
    status, lines = _Run(self._logdir, evaluation={'all': True})
    self.assertEqual(self._History(), [5, 10, 15])
    self.assertLen([x for x in lines if x.endswith('evaluated before')], 4)
    self.assertEqual(
      [x for x in lines if x.startswith('restored')],
      [f'restored {self._Prefix(15)}'],
    )

  def testOnce(self):
    self._Copy(5)
    for _unused in range(2):
      status, lines = _Run(self._logdir, evaluation={'once': True})
      self.assertEqual(status, 0)
      self.assertEqual(lines[0], f'restored {self._Prefix(5)}')
      self.assertEqual(self._Results()['global_step'], 5)
    self.assertEqual(self._History(), [5])  # The same again.

  def testMaxStepsOfTheCommandCounts(self):
    self._Copy(5)
    status, unused = _Run(self._logdir, max_steps=5)
    self.assertEqual(status, 0)

  def testOneCheckpointAndItsPredictions(self):
    self._Copy(5, 10)
    before = self._Files()
    path = os.path.join(self.create_tempdir().full_path, 'p.jsonl')
    status, lines = _Run(
      self._logdir,
      num_partitions=2,
      evaluation={'checkpoint': self._Prefix(5), 'predictions': path},
    )
    self.assertEqual(status, 0)
    self.assertEqual(self._Files(), before)
    self.assertIn(f'predictions of step 5: {path}', lines)
    with open(path) as f:
      found = [json.loads(line) for line in f]
    self.assertEqual(
      [(x['dataset'], x['index']) for x in found],
      [('dev', i) for i in range(20)] + [('test', i) for i in range(40)],
    )
    correct = [x['label'] == x['predicted'] for x in found[20:]]
    self.assertEqual(lines[-1], f'test accuracy: {sum(correct) / 40:.4f}')

  def testDeletedWhileReading(self):
    self._Copy(5, 10)
    restore = checkpoint.Checkpointer.Restore

    def _DeleteFirst(checkpointer, path):
      if path == self._Prefix(10):
        checkpoint_files.Delete(path)
      return restore(checkpointer, path)

    with mock.patch.object(checkpoint.Checkpointer, 'Restore', _DeleteFirst):
      status, lines = _Run(self._logdir, evaluation={'once': True})
    self.assertEqual(status, 0)
    self.assertEqual(
      lines[:2],
      [
        f'{self._Prefix(10)} has been deleted meanwhile; taking the next one',
        f'restored {self._Prefix(5)}',
      ],
    )
    self.assertEqual(self._History(), [5])

  def testAllAreDeleted(self):
    self._Copy(5)
    with mock.patch.object(
      checkpoint_files, 'Checkpoints', return_value=[self._Prefix(7)]
    ):
      with self.assertRaisesRegex(user_error.TrainingError, 'were deleted'):
        _Run(self._logdir, evaluation={'all': True})

  def testDamaged(self):
    self._Copy(5)
    os.truncate(f'{self._Prefix(5)}.index', 10)
    with self.assertRaisesRegex(user_error.UserError, 'is damaged.*10 bytes'):
      _Run(self._logdir)

  def testSigtermEndsWaitingAtOnce(self):
    self._Copy(5)
    sent = []

    def _Kill():
      sent.append(time.monotonic())
      os.kill(os.getpid(), signal.SIGTERM)

    self._When(lambda: self._History() == [5], _Kill)
    status, lines = _Run(self._logdir)
    self.assertLess(time.monotonic() - sent[0], 60.0)
    self.assertEqual(status, 143)
    self.assertEqual(
      lines[-1],
      'stopped by SIGTERM; step 5 is evaluated; the same command goes on from '
      'there',
    )

  def testSigtermInAnEvaluation(self):
    self._Copy(5)
    restore = checkpoint.Checkpointer.Restore

    def _Stop(checkpointer, path):
      signal.raise_signal(signal.SIGTERM)
      return restore(checkpointer, path)

    with mock.patch.object(checkpoint.Checkpointer, 'Restore', _Stop):
      status, lines = _Run(self._logdir)
    self.assertEqual(status, 143)
    self.assertIn('nothing is evaluated', lines[-1])
    self.assertEqual(self._History(), [])

  def testTimeout(self):
    self._Copy(5)
    with self.assertRaisesRegex(
      user_error.TrainingError, r'^0.5 seconds \(--eval_timeout\).*step 5 of 15'
    ):
      _Run(self._logdir, evaluation={'timeout': 0.5})
    self.assertEqual(self._History(), [5])

  def testNothingToEvaluate(self):
    for evaluation, message in (
      ({'once': True}, 'train holds no checkpoint to evaluate'),
      ({'all': True}, 'train holds no checkpoint to evaluate'),
      (
        {'checkpoint': f'{self._logdir}/train/ckpt-00000007'},
        r'^--checkpoint=\S+7: there is no complete checkpoint',
      ),
    ):
      with self.assertRaisesRegex(user_error.UserError, message):
        _Run(self._logdir, evaluation=evaluation)
      self.assertFalse(os.path.exists(self._logdir))


if __name__ == '__main__':
  absltest.main()
