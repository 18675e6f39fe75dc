"""Tests of evaluation."""

import os

from absl.testing import absltest

from lingvo_gpipe import trainer_test_models
from lingvo_gpipe.jobs import (
  eval_program,
  evaluation,
  logdir,
  predictions,
)


class EvaluationTest(absltest.TestCase):
  def _Evaluation(self, stops=()):
    task, inputs = trainer_test_models.MakeTiny()
    self._logdir = logdir.LogDir(self.create_tempdir().full_path)
    self._stops = list(stops)
    return evaluation.Evaluation(
      task,
      {'dev': inputs['dev']},
      logdir=self._logdir,
      start_step=0,
      interrupted=lambda: bool(self._stops and self._stops.pop(0)),
    )

  def testEvaluatesAStepOnce(self):
    evaluate = self._Evaluation()
    self.assertEqual(evaluate.datasets, ['dev'])
    first = evaluate.Run('dev', 10)
    self.assertIs(evaluate.Run('dev', 10), first)
    self.assertIsNot(evaluate.Run('dev', 20), first)
    self.assertLen(os.listdir(self._logdir.EvalDir('dev')), 1)

  def testFindAndCompute(self):
    evaluate = self._Evaluation()
    computed = evaluate.Compute('dev')
    self.assertIsNone(evaluate.Find('dev', 10))
    self.assertFalse(os.path.exists(self._logdir.EvalDir('dev')))
    run = evaluate.Run('dev', 10)
    self.assertEqual(run.metrics, computed.metrics)
    self.assertIs(evaluate.Find('dev', 10), run)
    self.assertIsNone(evaluate.Find('dev', 20))

  def testInterrupted(self):
    evaluate = self._Evaluation(stops=[False, True])
    self.assertIsNone(evaluate.Run('dev', 10))
    # Of an evaluation that was given up nothing stays.
    self.assertFalse(os.path.exists(self._logdir.EvalDir('dev')))
    metrics = evaluate.Run('dev', 10).metrics
    self.assertEqual(set(metrics), {'loss', 'accuracy'})

  def testPredictionsAreMadeAgain(self):
    evaluate = self._Evaluation()
    path = os.path.join(self.create_tempdir().full_path, 'predictions')
    first = evaluate.Run('dev', 10)
    evaluate.CheckPredictions()
    with predictions.Open(path) as writer:
      again = evaluate.Run('dev', 10, writer)
      writer.Publish()
    self.assertEqual(again.metrics, first.metrics)
    with open(path) as f:
      self.assertLen(f.readlines(), again.num_examples)
    self.assertIs(evaluate.Run('dev', 10), first)

  def testMetricNames(self):
    names = self._Evaluation().MetricNames('dev')
    self.assertCountEqual(names, ['loss', 'accuracy'])

  def testStepLine(self):
    result = eval_program.EvalResult(
      {'loss': 0.5, 'accuracy': 1.0}, 3, 40, 81.6
    )
    line = evaluation.StepLine(20, 'dev', result)
    self.assertEqual(
      line, 'step 20 dev loss 0.5000 accuracy 1.0000 82 examples/s'
    )
    self.assertEqual(
      line.values,
      {
        'step': 20,
        'dataset': 'dev',
        'loss': 0.5,
        'accuracy': 1.0,
        'examples_per_second': 81.6,
      },
    )

  def testResultLines(self):
    metrics = {'accuracy': 0.99166, 'error_5': 0.0, 'loss': 0.03125}
    lines = evaluation.ResultLines('test', metrics)
    self.assertEqual(
      lines,
      ['test loss: 0.0312', 'test error_5: 0.0000', 'test accuracy: 0.9917'],
    )
    self.assertEqual(lines[0].values, {'dataset': 'test', 'loss': 0.03125})


if __name__ == '__main__':
  absltest.main()
