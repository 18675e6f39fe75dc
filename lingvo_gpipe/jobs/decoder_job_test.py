"""Tests of decoder_job, and of decoding after training."""

import contextlib
import io
import json
import os

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import eval_flags, flags
from lingvo_gpipe.train import checkpoint_files


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Run(logdir, *, model='Named', evaluation=None, **options):
  """(exit status, lines of stdout)."""
  options = flags.Options(
    model=f'{trainer_process.MODELS}.{model}',
    logdir=logdir,
    evaluation=eval_flags.EvalOptions(**evaluation or {}),
    **options,
  )
  options.Check()
  stdout = io.StringIO()
  with contextlib.redirect_stdout(stdout):
    status = trainer.Run(options)
  return status, stdout.getvalue().splitlines()


def _Lines(path):
  with open(path) as f:
    return [json.loads(line) for line in f]


class DecoderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._logdir = os.path.join(self.create_tempdir().full_path, 'logdir')

  def _Train(self, **options):
    return _Run(
      self._logdir,
      max_steps=10,
      model_params_override='train.save_interval_steps=5',
      **options,
    )

  def _Path(self, name):
    return os.path.join(self._logdir, 'decoder_test', name)

  def testTrainerDecodesInTheEnd(self):
    status, lines = self._Train()
    self.assertEqual(status, 0)
    path = self._Path('decoded-00000010.jsonl')
    self.assertIn(f'test as decoded at step 10: {path}', lines)
    right = sum(x['label'] == x['named'] for x in _Lines(path))
    self.assertIn(f'test named: {right / 40:.4f}', lines)
    with open(os.path.join(self._logdir, 'results.json')) as f:
      results = json.load(f)
    self.assertEqual(results['test']['named'], right / 40)
    self.assertEqual(results['test']['accuracy'], right / 40)

  def testTrainerCanLeaveItOut(self):
    status, lines = self._Train(decode_at_end=False)
    self.assertEqual(status, 0)
    self.assertFalse([x for x in lines if 'decoded' in x])
    self.assertFalse(os.path.exists(self._Path('')))

  def testDecodesAllCheckpointsOnce(self):
    self._Train(decode_at_end=False)
    status, lines = _Run(self._logdir, job='decoder', evaluation={'all': True})
    self.assertEqual(status, 0)
    history = _Lines(self._Path('decoded.jsonl'))
    self.assertEqual([x['step'] for x in history], [5, 10])
    for record in history:
      rows = _Lines(self._Path(f'decoded-{record["step"]:08d}.jsonl'))
      right = sum(x['label'] == x['named'] for x in rows)
      self.assertEqual(record['metrics'], {'named': right / 40})
    self.assertEqual(lines[-1], f'test named: {right / 40:.4f}')
    with open(os.path.join(self._logdir, 'decoder_results.json')) as f:
      self.assertEqual(json.load(f)['global_step'], 10)
    status, again = _Run(self._logdir, job='decoder')
    self.assertEqual(status, 0)
    self.assertIn(f'step 10 test named {right / 40:.4f}, decoded before', again)

  def testOneCheckpoint(self):
    self._Train(decode_at_end=False)
    path = os.path.join(self.create_tempdir().full_path, 'out.jsonl')
    prefix = checkpoint_files.Prefix(os.path.join(self._logdir, 'train'), 5)
    before = sorted(os.listdir(self._logdir))
    for predictions in (path, ''):
      status, unused = _Run(
        self._logdir,
        job='decoder',
        num_partitions=2,
        evaluation={'checkpoint': prefix, 'predictions': predictions},
      )
      self.assertEqual(status, 0)
    self.assertLen(_Lines(path), 40)
    self.assertEqual(sorted(os.listdir(self._logdir)), before)

  def testNothingToDecode(self):
    with self.assertRaisesRegex(
      user_error.UserError, 'holds no checkpoint to decode; train first'
    ):
      _Run(self._logdir, job='decoder', evaluation={'once': True})
    _Run(self._logdir, model='Tiny', max_steps=1)
    with self.assertRaisesRegex(user_error.UserError, 'has nothing to decode'):
      _Run(self._logdir, model='Tiny', job='decoder')


if __name__ == '__main__':
  absltest.main()
