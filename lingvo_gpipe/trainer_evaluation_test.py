"""What the trainer does about evaluation, and what it starts from."""

import contextlib
import io
import json
import os
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_test_models, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import eval_flags, flags

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


class TrainerEvaluationTest(absltest.TestCase):
  def _LogDir(self, name='logdir'):
    return os.path.join(self.create_tempdir().full_path, name)

  def _Results(self, logdir):
    with open(os.path.join(logdir, 'results.json')) as f:
      return json.load(f)

  def testKeepsTheBestCheckpoint(self):
    logdir = self._LogDir()
    interval = 'eval.interval_steps=4; train.save_max_to_keep=1'
    # No checkpoint is due before the end, but the best ones are kept.
    status, lines = _Run(
      logdir,
      max_steps=14,
      eval_at_end=False,
      model_params_override=f'{interval}; eval.best_metric=loss',
    )
    self.assertEqual(status, 0)
    dev = {
      int(x.split()[1]): float(x.split()[4])
      for x in lines
      if x.startswith('step ') and ' dev ' in x
    }
    self.assertEqual(list(dev), [4, 8, 12])
    best = min(dev, key=dev.get)
    with open(os.path.join(logdir, 'train', 'best.json')) as f:
      record = json.load(f)
    self.assertEqual((record['step'], record['metric']), (best, 'loss'))
    self.assertAlmostEqual(record['value'], dev[best], delta=1e-4)
    saved = {f for f in os.listdir(f'{logdir}/train') if f.endswith('.json')}
    self.assertEqual(
      saved,
      {'best.json', f'ckpt-{best:08d}.json', 'ckpt-00000014.json'},
    )
    shown = [x for x in lines if x.startswith('best dev loss so far: ')]
    self.assertEndsWith(shown[-1], f', {logdir}/train/ckpt-{best:08d}')
    # Another metric, of which nothing is recorded, at the end.
    status, lines = _Run(
      logdir,
      max_steps=14,
      model_params_override='eval.best_metric=accuracy',
    )
    with open(os.path.join(logdir, 'train', 'best.json')) as f:
      self.assertEqual(json.load(f)['step'], 14)

  def testPredictionsAtTheEnd(self):
    logdir = self._LogDir()
    path = os.path.join(self.create_tempdir().full_path, 'p.jsonl')
    # The dev data has then been evaluated at the last step before.
    status, lines = _Run(
      logdir,
      num_partitions=2,
      max_steps=4,
      model_params_override='eval.interval_steps=4',
      evaluation=eval_flags.EvalOptions(predictions=path),
    )
    self.assertEqual(status, 0)
    self.assertIn(f'predictions of step 4: {path}', lines)
    with open(path) as f:
      found = [json.loads(line) for line in f]
    for dataset, size in (('dev', 20), ('test', 40)):
      own = [x for x in found if x['dataset'] == dataset]
      self.assertEqual([x['index'] for x in own], list(range(size)))
      accuracy = sum(x['label'] == x['predicted'] for x in own) / size
      self.assertAlmostEqual(
        accuracy, self._Results(logdir)[dataset]['accuracy'], places=5
      )
    # That of before is the one in TensorBoard.
    self.assertLen(os.listdir(os.path.join(logdir, 'eval_dev')), 1)

  def testWhatEvaluationCannotDoComesOutAtTheStart(self):
    def _NoLogits(cell, theta, inputs, batch):
      outputs = classify(cell, theta, inputs, batch)
      outputs.pop('logits', None)
      return outputs

    classify = trainer_test_models.Classify.FProp
    with mock.patch.object(trainer_test_models.Classify, 'FProp', _NoLogits):
      with self.assertRaisesRegex(
        user_error.UserError, '^--predictions=p: there is nothing to predict'
      ):
        _Run(self._LogDir(), evaluation=eval_flags.EvalOptions(predictions='p'))
    with self.assertRaisesRegex(
      user_error.UserError, "eval.best_metric='top5' .* accuracy, loss"
    ):
      _Run(self._LogDir(), model_params_override='eval.best_metric=top5')

  def testFineTuning(self):
    first, second = self._LogDir('first'), self._LogDir('second')
    _Run(first, max_steps=6, model_params_override='train.ema.decay=0.5')
    init = {
      'model': f'{_MODELS}.Wide',
      'max_steps': 3,
      'init_checkpoint': first,
      'model_params_override': 'train.init_from.exclude=["classify/.*"]',
    }
    status, lines = _Run(second, **init)
    self.assertEqual(status, 0)
    start = [x for x in lines if ' variables start from ' in x]
    self.assertRegex(
      start[0],
      r'^6 variables start from .*/first/train/ckpt-00000006 .*, 6 of them '
      'from averages; 2 stay random: tiny/net/classify/b, tiny/net/classify/w$',
    )
    self.assertIn('training from step 0 to 3; building the graph', lines)
    status, lines = _Run(second, **{**init, 'max_steps': 4})
    self.assertIn('training from step 3 to 4; building the graph', lines)
    self.assertNotIn(' start from ', ' '.join(lines))


if __name__ == '__main__':
  absltest.main()
