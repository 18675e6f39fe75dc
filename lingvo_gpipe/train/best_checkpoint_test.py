"""Tests of best_checkpoint."""

import json
import os

from absl.testing import absltest, parameterized

from lingvo_gpipe.train import best_checkpoint, checkpoint_files

_Criterion = best_checkpoint.Criterion
_NAN = float('nan')


class FindCriterionTest(parameterized.TestCase):
  @parameterized.parameters(
    (None, ['loss', 'accuracy'], _Criterion('accuracy')),
    (None, ['perplexity', 'loss'], _Criterion('loss', False)),
    (None, ['perplexity'], None),
    ('', ['loss', 'accuracy'], None),
    ('accuracy_top5', ['accuracy_top5'], _Criterion('accuracy_top5')),
    ('loss', ['loss', 'accuracy'], _Criterion('loss', False)),
    ('loss_main', ['loss_main'], _Criterion('loss_main', False)),
    ('-perplexity', ['perplexity'], _Criterion('perplexity', False)),
    ('-loss', ['loss'], _Criterion('loss', False)),
  )
  def testNames(self, best_metric, metrics, expected):
    self.assertEqual(
      best_checkpoint.FindCriterion(best_metric, metrics), expected
    )

  def testNoSuchMetric(self):
    with self.assertRaisesRegex(
      ValueError, "eval.best_metric='-acuracy' .* use one of accuracy, loss,"
    ):
      best_checkpoint.FindCriterion('-acuracy', ['loss', 'accuracy'])


class RecordTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._directory = self.create_tempdir().full_path

  def _Record(self, step, value, criterion, saved=True):
    if saved:
      prefix = checkpoint_files.Prefix(self._directory, step)
      with open(f'{prefix}.json', 'w'):
        pass
    is_best = best_checkpoint.IsBest(self._directory, value, criterion)
    recorded = best_checkpoint.Record(self._directory, step, value, criterion)
    self.assertEqual(is_best, recorded)
    return recorded

  def _Best(self):
    return checkpoint_files.StepOf(best_checkpoint.Prefix(self._directory))

  def testHigherAndLower(self):
    accuracy = _Criterion('accuracy')
    values = [_NAN, 0.5, 0.5, 0.4, 0.6, _NAN]
    found = [self._Record(k, x, accuracy) for k, x in enumerate(values)]
    self.assertEqual(found, [False, True, False, False, True, False])
    self.assertEqual(self._Best(), 4)
    # Of another metric nothing is recorded yet.
    loss = _Criterion('loss', higher_is_better=False)
    found = [self._Record(k, x, loss) for k, x in ((6, 9.0), (7, 9.0), (8, 8))]
    self.assertEqual(found, [True, False, True])
    with open(os.path.join(self._directory, 'best.json')) as f:
      self.assertEqual(json.load(f), {'step': 8, 'metric': 'loss', 'value': 8})

  def testARecordWithoutItsCheckpointIsNone(self):
    accuracy = _Criterion('accuracy')
    self.assertIsNone(best_checkpoint.Prefix(self._directory))
    self.assertTrue(self._Record(1, 0.9, accuracy, saved=False))
    self.assertIsNone(best_checkpoint.Prefix(self._directory))
    self.assertTrue(self._Record(2, 0.1, accuracy))
    self.assertEqual(self._Best(), 2)


if __name__ == '__main__':
  absltest.main()
