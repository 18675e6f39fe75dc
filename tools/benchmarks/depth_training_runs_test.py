"""Tests of depth_training_runs."""

import dataclasses

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import test_translation_data, test_vocabulary
from tools.benchmarks import depth_training_models, depth_training_runs

_SHAPE = depth_training_models.Shape(
  num_layers=2, dim=8, hidden_dim=16, num_heads=2, head_dim=4
)
_OPTIONS = depth_training_runs.Options(
  architecture=depth_training_models.LanguageModel(),
  steps=6,
  batch_size=2,
  sequence_length=8,
  optimizer='adam',
  learning_rate=0.01,
  logits_abs_max=15.0,
  gradient_norm=1.0,
  use_norm=False,
)


def _Measures(text):
  return depth_training_runs.ParseMeasures(text)


def _Run(text, seed=1, runner=None, **options):
  runner = runner or depth_training_runs.Runner(
    dataclasses.replace(_OPTIONS, **options)
  )
  return runner.Run(_SHAPE, _Measures(text), seed)


class DepthTrainingRunsTest(absltest.TestCase):
  def testParseMeasures(self):
    self.assertEqual(_Measures('none'), frozenset())
    self.assertEqual(_Measures('init+norm'), {'init', 'norm'})
    self.assertEqual(_Measures('all'), set(depth_training_runs.MEASURES))
    with self.assertRaisesRegex(user_error.UserError, "'x' is none of init"):
      _Measures('init+x')

  def testRunsDoNotDependOnThoseBefore(self):
    """Though they share a graph, variables and slots."""
    runner = depth_training_runs.Runner(_OPTIONS)
    first = _Run('none', 1, runner)
    for text, seed in (('init', 1), ('none', 2), ('none', 1)):
      row = _Run(text, seed, runner)
      self.assertEqual(
        row['losses'] == first['losses'], (text, seed) == ('none', 1)
      )
    self.assertEqual(_Run('init', 2, runner), _Run('init', 2))

  def testWhatMeasuresSet(self):
    def _Params(text):
      return depth_training_runs.Params(_SHAPE, _Measures(text), _OPTIONS, 1)

    plain, treated = _Params('none'), _Params('all')
    self.assertEqual(plain.net.cells[1].feed_forward_init_scale, 1.0)
    self.assertEqual(treated.net.cells[1].feed_forward_init_scale, 0.5)
    self.assertIsNone(plain.net.cells[-1].softmax.logits_abs_max)
    self.assertEqual(treated.net.cells[-1].softmax.logits_abs_max, 15.0)
    plain, treated = plain.train.learner, treated.train.learner
    self.assertFalse(plain.skip_nonfinite)
    self.assertTrue(treated.skip_nonfinite)
    self.assertEqual(plain.clip_gradient_norm_to_value, 0.0)
    self.assertEqual(treated.clip_gradient_norm_to_value, 1.0)
    rates = [
      float(treated.Instantiate().LearningRate(tf.constant(step, tf.int64)))
      for step in range(6)
    ]
    self.assertAlmostEqual(max(rates), 0.01)
    self.assertLess(rates[-1], max(rates))

  def testCountsWhatIsNotFinite(self):
    row = _Run('none', learning_rate=float('inf'))
    self.assertIsNone(row['loss'])
    self.assertEqual((row['non_finite'], row['skipped']), (5, 0))
    self.assertEqual(row['losses'][1:], [None] * 5)
    self.assertEqual(row['worst'], row['losses'][0])

  def testMistakes(self):
    runner = depth_training_runs.Runner(_OPTIONS)
    with self.assertRaisesRegex(user_error.UserError, 'dim=3 must be even'):
      runner.Run(dataclasses.replace(_SHAPE, dim=3), frozenset(), 1)
    with self.assertRaisesRegex(user_error.UserError, 'there is no such data'):
      _Run('none', architecture=depth_training_models.LanguageModel('/x/y'))

  def testLearns(self):
    losses = _Run('all', steps=60, learning_rate=0.03, use_norm=True)['losses']
    self.assertLess(sum(losses[-10:]) / 10, losses[0] - 1.0)

  def testTranslationLearns(self):
    """2 + 2 layers, without a norm at the end."""
    folder = self.create_tempdir().full_path
    test_translation_data.Write(folder)
    row = _Run(
      'all',
      architecture=depth_training_models.EncoderDecoder(
        folder, test_vocabulary.Get().size
      ),
      steps=50,
      batch_size=4,
      sequence_length=32,
      learning_rate=0.03,
    )
    losses = row['losses']
    self.assertEqual((row['non_finite'], row['skipped']), (0, 0))
    self.assertLess(sum(losses[-5:]) / 5, losses[0] - 1.0)


if __name__ == '__main__':
  absltest.main()
