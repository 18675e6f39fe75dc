"""Tests of train_params."""

from absl.testing import absltest

from lingvo_gpipe.config import params_override
from lingvo_gpipe.train import train_params


class TrainParamsTest(absltest.TestCase):
  def testTextRoundTrip(self):
    p = train_params.TrainParams()
    params_override.ApplyOverride(
      p,
      'init_from.checkpoint=/runs/a; init_from.exclude=["head/.*"]; '
      r'init_from.rules=[("a/(.*)", "b;c/\\1"), ("d", "e")]; max_steps=7',
    )
    self.assertEqual(
      list(p.init_from.rules), [('a/(.*)', 'b;c/\\1'), ('d', 'e')]
    )
    self.assertEqual(train_params.TrainParams().FromText(p.ToText()), p)

  def testBestMetricCanBeSetByText(self):
    for text, value in (
      ('best_metric="-loss"', '-loss'),
      ('best_metric=""', ''),
      ('best_metric=accuracy', 'accuracy'),
    ):
      p = params_override.ApplyOverride(train_params.EvalParams(), text)
      self.assertEqual(p.best_metric, value)
      self.assertEqual(train_params.EvalParams().FromText(p.ToText()), p)


if __name__ == '__main__':
  absltest.main()
