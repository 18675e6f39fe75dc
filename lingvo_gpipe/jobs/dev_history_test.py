"""Tests of dev_history."""

import os

from absl.testing import absltest

from lingvo_gpipe.jobs import dev_history


class DevHistoryTest(absltest.TestCase):
  def testARestartKnowsTheSame(self):
    path = os.path.join(self.create_tempdir().full_path, 'dev.jsonl')
    history = dev_history.DevHistory(path, 0)
    self.assertIsNone(history.Best(None))
    losses = {2: 3.0, 4: 1.0, 6: float('nan'), 8: 1.0, 10: 0.5}
    since = []
    for step, loss in losses.items():
      history.Add(step, {'loss': loss, 'accuracy': -loss})
      history.Add(step, {'loss': 0.0, 'accuracy': 0.0})  # Known already.
      since.append(history.Best('loss').evals_since)
    self.assertEqual(since, [0, 0, 1, 2, 0])
    again = dev_history.DevHistory(path, 9)
    self.assertEqual(again.Best('loss'), ('loss', 4, 1.0, 2))
    self.assertEqual(again.Best(None), ('accuracy', 4, -1.0, 2))
    self.assertIsNone(again.Best(''))
    self.assertEqual((again.Has(8), again.Has(10)), (True, False))

  def testNoNumbers(self):
    path = os.path.join(self.create_tempdir().full_path, 'dev.jsonl')
    history = dev_history.DevHistory(path, 0)
    for step in (1, 2):
      history.Add(step, {'loss': float('nan')})
    best = history.Best(None)
    self.assertEqual((best.step, best.evals_since), (None, 2))


if __name__ == '__main__':
  absltest.main()
