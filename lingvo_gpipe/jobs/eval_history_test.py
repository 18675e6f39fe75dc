"""Tests of eval_history."""

import math
import os

from absl.testing import absltest

from lingvo_gpipe.jobs import eval_history


class EvalHistoryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._path = os.path.join(
      self.create_tempdir().full_path, 'eval_test', 'evaluated.jsonl'
    )

  def _History(self):
    return eval_history.EvalHistory(self._path)

  def testRemembersWhatWasEvaluated(self):
    history = self._History()
    self.assertIsNone(history.Find(10, 'monday'))
    self.assertFalse(os.path.exists(self._path))
    history.Add(10, 'monday', {'loss': 0.1, 'accuracy': 1 / 3})
    history.Add(20, 'monday', {'loss': float('nan')})
    for again in (history, self._History()):
      self.assertEqual(
        again.Find(10, 'monday'), {'loss': 0.1, 'accuracy': 1 / 3}
      )
      self.assertTrue(math.isnan(again.Find(20, 'monday')['loss']))
      # The checkpoint of a run that was begun anew.
      self.assertIsNone(again.Find(10, 'tuesday'))

  def testTheLastOneCounts(self):
    history = self._History()
    for loss in (0.1, 0.2):
      history.Add(10, 'monday', {'loss': loss})
    self.assertEqual(self._History().Find(10, 'monday'), {'loss': 0.2})

  def testUnfinishedLine(self):
    self._History().Add(10, 'monday', {'loss': 0.1})
    with open(self._path, 'a') as f:
      f.write('null\n{"step": 20, "saved_at": "mon')
    self._History().Add(30, 'monday', {'loss': 0.3})
    history = self._History()
    self.assertEqual(history.Find(10, 'monday'), {'loss': 0.1})
    self.assertEqual(history.Find(30, 'monday'), {'loss': 0.3})


if __name__ == '__main__':
  absltest.main()
