"""Tests of checkpoint_watch, with a clock that the test turns."""

import os

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import checkpoint_watch
from lingvo_gpipe.train import checkpoint, checkpoint_files


class CheckpointWatchTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._directory = os.path.join(self.create_tempdir().full_path, 'train')
    self._lines, self._seconds, self._stop = [], 0.0, False
    # {second: what then happens}.
    self._events = {}

  def _Sleep(self, seconds):
    self._seconds += seconds
    self._events.pop(self._seconds, lambda: None)()

  def _Save(self, step):
    checkpoint.Checkpointer(self._directory, {'x': tf.Variable(1.0)}).Save(
      step, {'max_steps': 30}
    )

  def _Wait(self, is_new=lambda found: True, timeout=0.0):
    return checkpoint_watch.CheckpointWatch(
      self._directory,
      interrupted=lambda: self._stop,
      timeout=timeout,
      show=self._lines.append,
      now=lambda: self._seconds,
      sleep=self._Sleep,
    ).Wait(is_new, 'a checkpoint after step 10')

  def testWhatIsThereIsNotWaitedFor(self):
    for step in (10, 20):
      self._Save(step)
    found = self._Wait()
    self.assertEqual((found.step, found.metadata), (20, {'max_steps': 30}))
    self.assertEqual(found.prefix, checkpoint_files.Prefix(self._directory, 20))
    self.assertNotEmpty(found.saved_at)
    self.assertEmpty(self._lines)

  def testWaitsForTheNext(self):
    self._Save(10)
    self._events[5.0] = lambda: self._Save(20)
    found = self._Wait(lambda found: found.step > 10, timeout=6.0)
    self.assertEqual((found.step, self._seconds), (20, 5.0))
    self.assertEqual(
      self._lines,
      [
        f'waiting for a checkpoint after step 10 in {self._directory}, for 6 s '
        'at most'
      ],
    )

  def testTheSameStepSavedAgainIsNew(self):
    self._Save(10)
    first = self._Wait()
    self._events[1.0] = lambda: self._Save(10)
    self.assertNotEqual(self._Wait(lambda found: found != first), first)
    self.assertEqual(self._seconds, 1.0)

  def testTimeout(self):
    with self.assertRaisesRegex(
      user_error.TrainingError,
      r'^4 seconds \(--eval_timeout\) .* waiting for a checkpoint after step 1',
    ):
      self._Wait(timeout=4.0)
    self.assertEqual(self._seconds, 4.0)
    self.assertIn('which does not exist yet, for 4 s at most', self._lines[0])

  def testInterrupted(self):
    def _Stop():
      self._stop = True

    self._events[2.0] = _Stop
    self.assertIsNone(self._Wait())
    self.assertEqual(self._seconds, 2.0)

  def testDeletedAndDamaged(self):
    self._Save(10)
    prefix = checkpoint_files.Prefix(self._directory, 10)
    with open(f'{prefix}.json', 'w') as f:
      f.write('{')
    with self.assertRaisesRegex(checkpoint.CorruptError, 'it is not JSON'):
      checkpoint_watch.Look(prefix)
    checkpoint_files.Delete(prefix)
    self.assertFalse(checkpoint_watch.IsThere(prefix))
    self.assertIsNone(checkpoint_watch.Look(prefix))


if __name__ == '__main__':
  absltest.main()
