"""Tests for search."""

from __future__ import annotations

from absl.testing import absltest

from tools.plan import candidates, device, evaluation, fake_model, search


def _Evaluator(**kwargs):
  return evaluation.Evaluator(
    fake_model.FakeModel(8),
    device.Device(**{'flops': 1.0, 'link_speed': 1e9, **kwargs}),
  )


class SearchTest(absltest.TestCase):
  def testBestOfAll(self):
    found = candidates.Candidates(4, 8, 8)
    for memory in (None, 900, 600, 450):
      evaluator = _Evaluator(memory=memory)
      outcome = search.Search(evaluator, found, top=3)
      fitting = {}
      for c in found:
        planned = evaluator.Evaluate(c)
        if planned is not None:
          fitting.setdefault(c.WithPolicy(''), planned.seconds)
      self.assertSequenceAlmostEqual(
        [p.seconds for p in outcome.best], sorted(fitting.values())[:3]
      )
      self.assertLessEqual(outcome.num_evaluated, outcome.num_candidates)
      for planned in outcome.best:
        self.assertLessEqual(max(planned.memory), memory or float('inf'))

  def testOnlyThePromisingAreEvaluated(self):
    outcome = search.Search(_Evaluator(), candidates.Candidates(4, 8, 8), 1)
    self.assertLess(outcome.num_evaluated, outcome.num_candidates / 2)
    self.assertEqual(outcome.rejections, ())
    self.assertEqual(outcome.num_rejected, 0)

  def testRejectionsSayWhatIsNeeded(self):
    evaluator = _Evaluator(memory=450)
    outcome = search.Search(evaluator, candidates.Candidates(4, 8, 8), 2)
    self.assertNotEmpty(outcome.best)
    self.assertLen(outcome.rejections, 2)
    for rejection in outcome.rejections:
      self.assertGreater(rejection.rejected.memory, 450)
      smallest = rejection.smallest_fitting
      if smallest is not None:
        self.assertGreater(smallest, rejection.rejected.candidate.num_devices)

  def testWhereNothingFits(self):
    evaluator = _Evaluator(memory=90)
    outcome = search.Search(evaluator, candidates.Candidates(4, 8, 8), 2)
    self.assertEqual(outcome.best, ())
    self.assertEqual(outcome.num_rejected, outcome.num_evaluated)
    # As many devices as there are come nearest.
    for rejection in outcome.rejections:
      self.assertEqual(rejection.rejected.candidate.num_devices, 4)


if __name__ == '__main__':
  absltest.main()
