"""Tests of saving."""

import os
import threading
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import saving
from lingvo_gpipe.train import checkpoint, train_params


class SavingTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.directory = os.path.join(self.create_tempdir().full_path, 'train')
    self.variable = tf.Variable([1.0, 2.0])
    self.checkpointer = checkpoint.Checkpointer(
      self.directory, {'v': self.variable}, model='m'
    )
    self.lines = []

  def _Saver(self, **params):
    p = train_params.TrainParams().Set(save_interval_seconds=0.0)
    return saving.Saver(
      self.checkpointer, p.Set(**params), step=0, show=self.lines.append
    )

  def _Value(self, step):
    restored = tf.Variable([0.0, 0.0])
    reader = checkpoint.Checkpointer(self.directory, {'v': restored}, model='m')
    reader.Restore(f'{self.directory}/ckpt-{step:08d}')
    return restored.numpy().tolist()

  def testTrainingGoesOnWhileAnOldValueIsWritten(self):
    go, write = threading.Event(), checkpoint.Checkpointer.SaveSnapshot
    running, most = [], []

    def _Slow(*args):
      running.append(1)
      most.append(len(running))
      go.wait(20)
      try:
        return write(*args)
      finally:
        running.pop()

    saver, saved = self._Saver(), []
    with mock.patch.object(checkpoint.Checkpointer, 'SaveSnapshot', _Slow):
      saver.Save(1, {}, lambda: saved.append(1))
      self.variable.assign_add([1.0, 1.0])
      self.variable.scatter_sub(tf.IndexedSlices([5.0], [0]))
      self.assertEqual((saved, os.path.exists(self.directory)), ([], False))
      go.set()
      saver.Save(2, {}, lambda: saved.append(2))
      saver.Finish()
    self.assertEqual((saved, most), ([1, 2], [1, 1]))
    self.assertEqual(self._Value(1), [1.0, 2.0])
    self.assertEqual(self._Value(2), [-3.0, 3.0])
    self.assertEmpty(self.lines)

  @parameterized.parameters(True, False)
  def testFailureIsToldAndTriedAgain(self, background):
    saver = self._Saver(save_in_background=background)
    saver.Save(1, {})
    self.assertTrue(saver.IsSaved(1))
    os.rename(self.directory, f'{self.directory}.away')
    with open(self.directory, 'w') as f:
      f.write('in the way')
    saver.Save(2, {})
    self.assertFalse(saver.IsSaved(2))
    self.assertLen(self.lines, 1)
    self.assertRegex(
      self.lines[0], '^warning: cannot save .*ckpt-00000002.*Training goes on'
    )
    with self.assertRaisesRegex(
      user_error.TrainingError,
      'could not be written; the same command goes on from the beginning: ',
    ):
      saver.Finish()
    os.remove(self.directory)
    os.rename(f'{self.directory}.away', self.directory)
    saver.Finish()
    self.assertEqual(self._Value(2), [1.0, 2.0])

  def testOtherErrorsReachTheMainThread(self):
    saver = self._Saver()
    saver.Save(1, {'position': object()})
    with self.assertRaises(TypeError):
      saver.Wait()

  def testWhen(self):
    saver = self._Saver(save_interval_steps=4, save_keep_every_steps=6)
    due = [step for step in range(1, 13) if saver.IsDue(step)]
    self.assertEqual(due, [4, 6, 8, 12])
    self.assertEqual(saver.NextStop(4), 6)
    self.assertIsNone(self._Saver().NextStop(4))
    saver = self._Saver(save_interval_seconds=1e-9)
    self.assertEqual((saver.IsTime(0), saver.IsTime(1)), (False, True))
    saver.Skip(1000.0)
    self.assertFalse(saver.IsTime(1))


if __name__ == '__main__':
  absltest.main()
