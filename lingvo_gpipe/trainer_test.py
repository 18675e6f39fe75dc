"""Whole runs of the trainer in this process: train, stop, resume, evaluate."""

import contextlib
import io
import json
import math
import os
import re
import signal
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import trainer, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, step_log, train_program

_MODELS = 'lingvo_gpipe.trainer_test_models'


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Run(logdir, **options):
  """(exit status, lines of stdout)."""
  options.setdefault('model', f'{_MODELS}.Tiny')
  stdout = io.StringIO()
  with contextlib.redirect_stdout(stdout):
    status = trainer.Run(flags.Options(logdir=logdir, **options))
  return status, stdout.getvalue().splitlines()


def _Events(directory, suffix='.v2'):
  """{name: {step: value}} of a directory's TensorBoard files."""
  found = {}
  for file in os.listdir(directory):
    if 'tfevents' not in file or not file.endswith(suffix):
      continue
    path = os.path.join(directory, file)
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
      event = tf.compat.v1.Event.FromString(record)
      for value in event.summary.value:
        steps = found.setdefault(value.tag, {})
        assert event.step not in steps, (value.tag, event.step)
        steps[event.step] = float(tf.make_ndarray(value.tensor))
  return found


def _StopAfter(step, number=signal.SIGTERM):
  """Sends this process a signal while the trainer fetches batch `step`."""
  fetch = train_program.TrainProgram._Next

  def _Next(self):
    if self.step == step:
      signal.raise_signal(number)
    return fetch(self)

  return mock.patch.object(train_program.TrainProgram, '_Next', _Next)


class TrainerTest(absltest.TestCase):
  def _LogDir(self, name='logdir'):
    return os.path.join(self.create_tempdir().full_path, name)

  def _Log(self, logdir):
    return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))

  def _Results(self, logdir):
    with open(os.path.join(logdir, 'results.json')) as f:
      return json.load(f)

  def testWholeRun(self):
    logdir = self._LogDir()
    status, lines = _Run(
      logdir,
      num_partitions=2,
      model_params_override='eval.interval_steps=20; train.ema.decay=0.9',
    )
    self.assertEqual(status, 0)

    self.assertRegex(lines[0], rf'^model {_MODELS}.Tiny, .*models.py:\d+$')
    self.assertEqual(lines[1], f'logdir {logdir}')
    self.assertEqual(lines[2], 'devices /device:CPU:0, /device:CPU:1')
    self.assertIn('4 cells in 2 partitions', lines[4])
    self.assertIn(
      '59 trainable and 4 other parameters; weights 252 B, optimizer slots '
      '488 B',
      lines,
    )
    steps = [line for line in lines if re.match(r'step \d+/30 ', line)]
    self.assertLen(steps, 3)
    self.assertRegex(
      steps[-1],
      r'^step 30/30 loss \d\.\d{4} accuracy 0\.\d{4} lr 0.1 [\d.]+ examples/s '
      r'input wait \d+%$',
    )
    dev = [x for x in lines if x.startswith('step 20 dev loss ')]
    self.assertLen(dev, 1)
    self.assertRegex(dev[0], r' accuracy [01]\.\d{4} [\d.]+ examples/s$')
    self.assertRegex(
      '\n'.join(lines[-4:]),
      r'^dev loss: \d\.\d{4}\ndev accuracy: [01]\.\d{4}\n'
      r'test loss: \d\.\d{4}\ntest accuracy: [01]\.\d{4}$',
    )

    results = self._Results(logdir)
    accuracy = results['test_accuracy']
    self.assertEqual(lines[-1], f'test accuracy: {accuracy:.4f}')
    self.assertEqual(accuracy, results['test']['accuracy'])
    # 40 examples in batches of 16: the padding of the last one counts nothing.
    self.assertAlmostEqual(accuracy * 40, round(accuracy * 40), places=5)
    self.assertEqual(results['global_step'], 30)
    self.assertEqual(results['total_parameters'], 59)
    self.assertGreater(results['wall_seconds'], results['train_seconds'])

    log = self._Log(logdir)
    self.assertEqual([r['step'] for r in log], list(range(1, 31)))
    self.assertLess(log[-1]['loss'], log[0]['loss'])
    train = _Events(os.path.join(logdir, 'train'))
    self.assertEqual(list(train['loss']), [5, 10, 15, 20, 25, 30])
    self.assertAlmostEqual(train['loss'][30], log[-1]['loss'], places=6)
    self.assertContainsSubset(
      {
        'accuracy',
        'learning_rate',
        'grad_norm',
        'examples_per_second',
        'input_wait',
      },
      train,
    )
    self._CheckDevices(logdir, log, train)
    dev = _Events(os.path.join(logdir, 'eval_dev'))
    self.assertEqual(list(dev['accuracy']), [20, 30])
    test = _Events(os.path.join(logdir, 'eval_test'))
    self.assertEqual(list(test['accuracy']), [30])

    with open(os.path.join(logdir, 'params.txt')) as f:
      self.assertIn('net.num_partitions : 2\n', f.read())
    with open(os.path.join(logdir, 'plan.json')) as f:
      self.assertEqual(json.load(f)['num_partitions'], 2)

    # The same command again has nothing to train, and says the same.
    command = {
      'num_partitions': 2,
      'model_params_override': 'train.ema.decay=0.9',
    }
    for job in ('trainer', 'evaler'):
      status, again = _Run(logdir, job=job, **command)
      self.assertEqual(status, 0)
      self.assertEqual(again[-4:], lines[-4:])
      self.assertEqual(
        'nothing to train: step 30 of 30 is reached' in again, job == 'trainer'
      )
    for suffix in ('.v2', '.evaler'):
      test = _Events(os.path.join(logdir, 'eval_test'), suffix)
      self.assertEqual(list(test['accuracy']), [30])

    # More steps go on from there.
    status, more = _Run(logdir, max_steps=32, eval_at_end=False, **command)
    self.assertEqual(status, 0)
    self.assertIn('training from step 30 to 32; building the graph', more)
    self.assertNotIn('accuracy:', ' '.join(more))
    self.assertEqual(self._Log(logdir)[:30], log)
    self.assertLen(self._Log(logdir), 32)

    # A checkpoint of another model is refused, and its directory left alone.
    with self.assertRaisesRegex(
      user_error.UserError, r'Tiny.*Wide.*net/classify/b.*\(--logdir\)'
    ):
      _Run(logdir, model=f'{_MODELS}.Wide')
    with open(os.path.join(logdir, 'params.txt')) as f:
      self.assertIn('classify', f.read())

  def _CheckDevices(self, logdir, log, train):
    """What was measured of two partitions in 30 steps."""
    devices = step_log.Read(os.path.join(logdir, 'train', 'devices.jsonl'))
    self.assertEqual([r['step'] for r in devices], list(range(1, 31)))
    norms = [f'grad_norm/partition_{k}' for k in range(2)]
    for record, metrics in zip(devices, log, strict=True):
      self.assertAlmostEqual(
        math.hypot(*(record[name] for name in norms)), metrics['grad_norm']
      )
    for name in norms:
      self.assertEqual(list(train[name]), [5, 10, 15, 20, 25, 30])
    # With the lines of progress.
    for name in ('bubble', 'memory_mib/trainer'):
      self.assertEqual(list(train[name]), [10, 20, 30])
      self.assertAlmostEqual(train[name][20] / devices[19][name], 1.0, places=6)
    self.assertBetween(train['bubble'][30], 0.0, 1.0)

  def testStoppedAndResumedEqualsUnbroken(self):
    unbroken, broken = self._LogDir('unbroken'), self._LogDir('broken')
    status, expected = _Run(unbroken)
    self.assertEqual(status, 0)

    with _StopAfter(7):
      status, lines = _Run(broken)
    self.assertEqual(status, 143)
    self.assertEqual(
      lines[-1],
      f'stopped by SIGTERM at step 8; saved {broken}/train/ckpt-00000008; the '
      'same command goes on from there',
    )
    self.assertEqual(
      os.path.exists(os.path.join(broken, 'results.json')), False
    )
    with _StopAfter(20, signal.SIGINT):
      # Saving and partitions make no difference.
      status, lines = _Run(
        broken,
        num_partitions=2,
        model_params_override='train.save_interval_steps=4',
      )
    self.assertEqual(status, 130)
    self.assertIn('stopped by SIGINT at step 21;', lines[-1])
    status, lines = _Run(broken)
    self.assertEqual(status, 0)
    self.assertIn(f'restored {broken}/train/ckpt-00000021', lines)
    self.assertEqual(lines[-4:], expected[-4:])
    self.assertEqual(self._Log(broken), self._Log(unbroken))

  def testStoppedBeforeAnyStep(self):
    logdir = self._LogDir()
    with mock.patch.object(
      train_program,
      'TrainProgram',
      side_effect=lambda *a, **k: (
        signal.raise_signal(signal.SIGTERM) or mock.DEFAULT
      ),
    ):
      status, lines = _Run(logdir)
    self.assertEqual(status, 143)
    self.assertStartsWith(
      lines[-1], 'stopped by SIGTERM at step 0; no step is done, nothing saved'
    )

  def testSavesByTime(self):
    logdir = self._LogDir()
    _Run(
      logdir,
      max_steps=3,
      eval_at_end=False,
      model_params_override='train.save_interval_seconds=1e-9; '
      'train.save_max_to_keep=2',
    )
    saved = [f for f in os.listdir(f'{logdir}/train') if f.endswith('.json')]
    self.assertCountEqual(saved, ['ckpt-00000002.json', 'ckpt-00000003.json'])

  def testDivergedTraining(self):
    logdir = self._LogDir()
    with self.assertRaisesRegex(user_error.TrainingError, 'last 10 steps') as e:
      _Run(
        logdir,
        model_params_override='input.nan_from=4; train.max_nonfinite_steps=6; '
        'train.log_interval_steps=7; train.save_interval_steps=8',
      )
    self.assertEqual(e.exception.EXIT_STATUS, 1)
    log = self._Log(logdir)
    self.assertEqual([r['step'] for r in log if r['skipped']], [*range(5, 15)])
    self.assertIsNone(log[-1]['loss'])


if __name__ == '__main__':
  absltest.main()
