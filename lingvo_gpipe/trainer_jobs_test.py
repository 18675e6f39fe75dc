"""Several jobs in one process: --job=evaler,decoder, --job=trainer,evaler."""

import contextlib
import io
import json
import os
import shutil
import signal
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import (
  decode_program,
  eval_flags,
  eval_program,
  flags,
  saving,
)
from lingvo_gpipe.train import checkpoint, checkpoint_files

_STEPS = [4, 8, 10]  # That have checkpoints.
_PARAMS = (
  'train.save_interval_steps=4; eval.interval_steps=5; train.ema.decay=0.5; '
  'eval.best_metric=""'
)


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Calls(contextlib.ExitStack):
  """A context that notes evaluated and decoded datasets, restored prefixes."""

  def __init__(self):
    super().__init__()
    self.evaluated = self._Note(eval_program.EvalProgram, 'Run')
    self.decoded = self._Note(decode_program.DecodeProgram, 'Run')
    self.restored = self._Note(checkpoint.Checkpointer, 'Restore')

  def _Note(self, cls, method):
    original, notes = getattr(cls, method), []

    def _Call(program, *args):
      notes.append(getattr(program, 'name', args))
      return original(program, *args)

    self.enter_context(mock.patch.object(cls, method, _Call))
    return notes


def _Run(logdir, job, *, params=_PARAMS, evaluation=None, **options):
  """(exit status, lines of stdout, calls)."""
  options = flags.Options(
    model=f'{trainer_process.MODELS}.Named',
    logdir=logdir,
    job=job,
    max_steps=_STEPS[-1],
    model_params_override=params,
    evaluation=eval_flags.EvalOptions(**evaluation or {}),
    **options,
  )
  options.Check()
  stdout = io.StringIO()
  with contextlib.redirect_stdout(stdout), _Calls() as calls:
    status = trainer.Run(options)
  return status, stdout.getvalue().splitlines(), calls


def _Records(logdir, path):
  with open(os.path.join(logdir, path)) as f:
    return [json.loads(line) for line in f]


def _Json(logdir, path):
  with open(os.path.join(logdir, path)) as f:
    return json.load(f)


def _Values(logdir, step):
  """{name: bytes} of all tensors of a checkpoint."""
  reader = tf.train.load_checkpoint(
    checkpoint_files.Prefix(os.path.join(logdir, 'train'), step)
  )
  return {
    name: np.asarray(reader.get_tensor(name)).tobytes()
    for name in reader.get_variable_to_dtype_map()
    if not name.startswith('_')  # Of TensorFlow's own.
  }


class TrainerJobsTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    root = tempfile.mkdtemp(dir=absltest.get_default_test_tmpdir())
    cls.addClassCleanup(shutil.rmtree, root)
    cls._alone = os.path.join(root, 'alone')
    _Run(cls._alone, 'trainer')
    cls._together = os.path.join(root, 'together')
    cls._result = _Run(cls._together, 'trainer,evaler,decoder')

  def _Copy(self, source):
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    shutil.copytree(source, logdir)
    return logdir

  def _CheckRecords(self, logdir, expected):
    """The jobs' own files say of each checkpoint what another run's say."""
    for path in (
      'eval_dev/evaluated.jsonl',
      'eval_test/evaluated.jsonl',
      'decoder_test/decoded.jsonl',
    ):
      found = _Records(logdir, path)
      self.assertEqual([x['step'] for x in found], _STEPS)
      self.assertEqual(
        [x['metrics'] for x in found],
        [x['metrics'] for x in _Records(expected, path)],
      )
    for step in _STEPS:
      path = f'decoder_test/decoded-{step:08d}.jsonl'
      self.assertEqual(_Records(logdir, path), _Records(expected, path))

  def testTrainingIsNotDisturbed(self):
    for step in _STEPS:
      alone = _Values(self._alone, step)
      # Weights, momenta, averages, moments.
      self.assertGreater(len(alone), 20)
      self.assertEqual(_Values(self._together, step), alone)
    for path in ('train/metrics.jsonl', 'train/dev_metrics.jsonl'):
      self.assertEqual(
        _Records(self._together, path), _Records(self._alone, path)
      )

  def testWhatSeparateProcessesDo(self):
    logdir = self._Copy(self._alone)
    every = {'all': True}
    for job in ('evaler', 'decoder'):
      self.assertEqual(_Run(logdir, job, evaluation=every)[0], 0)
    self._CheckRecords(self._together, logdir)
    self.assertEqual(
      sorted(set(os.listdir(self._together))), sorted(set(os.listdir(logdir)))
    )
    for path in ('results.json', 'decoder_results.json'):
      together, separate = _Json(self._together, path), _Json(logdir, path)
      self.assertEqual(together['global_step'], 10)
      scores = {**separate['test'], **together['test']}
      self.assertEqual(together['test'], scores)
    self.assertIn('named', _Json(self._together, 'results.json')['test'])

  def testNothingIsDoneTwice(self):
    status, lines, calls = self._result
    self.assertEqual(status, 0)
    # Of the dev data also step 5, for the trainer; at 10 for both.
    self.assertEqual(
      calls.evaluated,
      ['dev', 'test', 'dev', 'dev', 'test', 'dev', 'test'],
    )
    self.assertEqual(calls.decoded, ['test'] * 3)
    shown = [x.split()[:3] for x in lines if x.endswith('examples/s')]
    self.assertLen(shown, 10)
    # The test data for each of both jobs.
    self.assertLen(set(map(tuple, shown)), 7)
    self.assertStartsWith(lines[-1], 'test accuracy: ')

  def testTheSameCommandAgain(self):
    logdir = self._Copy(self._together)
    path = os.path.join(logdir, 'decoder_test/decoded.jsonl')
    with open(path) as f:
      lines = f.readlines()
    with open(path, 'w') as f:
      f.writelines(lines[:-1])  # As if stopped while decoding.
    before = _Json(logdir, 'results.json')
    status, lines, calls = _Run(logdir, 'trainer,evaler,decoder')
    self.assertEqual(status, 0)
    self.assertEqual((calls.evaluated, calls.decoded), ([], ['test']))
    self.assertTrue([x for x in lines if x.endswith(', evaluated before')])
    self._CheckRecords(logdir, self._together)
    after = _Json(logdir, 'results.json')
    del before['wall_seconds'], after['wall_seconds']
    self.assertEqual(after, before)

  def testStoppedInItsWork(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    run = decode_program.DecodeProgram.Run

    def _Stop(program, *args):
      signal.raise_signal(signal.SIGTERM)
      return run(program, *args)

    with mock.patch.object(decode_program.DecodeProgram, 'Run', _Stop):
      status, lines, unused = _Run(logdir, 'trainer,evaler,decoder')
    self.assertEqual(status, 143)
    self.assertStartsWith(lines[-1], 'stopped by SIGTERM at step 4; saved ')
    # What the evaler has done is not done again.
    status, lines, calls = _Run(logdir, 'trainer,decoder,evaler')
    self.assertEqual(status, 0)
    self.assertLen(calls.evaluated, 5)
    self._CheckRecords(logdir, self._together)
    self.assertEqual(_Values(logdir, 10), _Values(self._alone, 10))

  def testFollowsARunForBoth(self):
    logdir = self._Copy(self._alone)
    status, lines, calls = _Run(
      logdir, 'evaler,decoder', evaluation={'all': True}
    )
    self.assertEqual(status, 0)
    self._CheckRecords(logdir, self._together)
    self.assertLen(calls.restored, len(_STEPS))
    self.assertStartsWith(lines[-1], 'test named: ')
    self.assertEqual(
      _Json(logdir, 'results.json')['test'].keys(), {'loss', 'accuracy'}
    )
    # Another one adds only what is missing.
    path = os.path.join(logdir, 'eval_test/evaluated.jsonl')
    os.unlink(path)
    status, lines, calls = _Run(logdir, 'decoder,evaler')
    self.assertEqual(status, 0)
    self.assertEqual((calls.evaluated, calls.decoded), (['test'], []))
    self.assertLen(calls.restored, 1)

  def testWithoutTheTrainersOwnEvaluation(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    predictions = os.path.join(self.create_tempdir().full_path, 'p')
    params = 'train.save_in_background=False; eval.interval_steps=10'
    with mock.patch.object(saving.Saver, 'Skip') as skip:
      status, lines, calls = _Run(
        logdir,
        'evaler,trainer',
        params=params,
        eval_at_end=False,
        evaluation={'predictions': predictions},
      )
    self.assertEqual(status, 0)
    skip.assert_called_once()  # One checkpoint, for which training pauses.
    self.assertGreater(skip.call_args.args[0], 0.0)
    # With predictions, the dev data once more.
    self.assertEqual(calls.evaluated, ['dev', 'dev', 'test'])
    self.assertEqual(calls.decoded, [])
    self.assertStartsWith(lines[-1], 'test accuracy: ')
    with open(predictions) as f:
      self.assertLen(f.readlines(), 60)

  def testACheckpointThatCannotBeWrittenAtFirst(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    write, failed = checkpoint.Checkpointer.SaveSnapshot, []

    def _FailOnce(checkpointer, step, *args):
      if step == 10 and not failed:
        failed.append(step)
        raise OSError('the disk is full')
      return write(checkpointer, step, *args)

    with mock.patch.object(checkpoint.Checkpointer, 'SaveSnapshot', _FailOnce):
      status, unused, calls = _Run(logdir, 'trainer,evaler')
    self.assertEqual((status, failed), (0, [10]))
    # The trainer evaluates at the end, which the evaler then takes over.
    self.assertLen(calls.evaluated, 7)
    self.assertEqual(
      [x['step'] for x in _Records(logdir, 'eval_test/evaluated.jsonl')],
      _STEPS,
    )


if __name__ == '__main__':
  absltest.main()
