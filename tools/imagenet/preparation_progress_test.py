"""Tests of preparation_progress."""

import os
import time

from absl.testing import absltest

from tools.imagenet import preparation_progress


class PreparationProgressTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._archive = os.path.join(self._folder, 'train.tar')
    self._Write(self._archive, 10_000)
    self._time = 100.0
    self._lines = []

  def _Write(self, path, size):
    with open(path, 'wb') as f:
      f.write(b'0' * size)

  def _Progress(self, interval=1000.0):
    return preparation_progress.PreparationProgress(
      self._folder,
      interval=interval,
      now=lambda: self._time,
      show=self._lines.append,
    )

  def testReadingAndWriting(self):
    with self._Progress() as progress:
      self.assertEqual(progress.Line(), '')
      progress.StartReading(self._archive)
      self.assertEqual(progress.Line(), '')
      self._time += 60.0
      for _ in range(20):
        progress.Add(100)
      self.assertEqual(
        progress.Line(),
        'reading train.tar 20.0% 20 images 0.333 images/s ETA 4m00s',
      )
      self._time += 20.0
      for _ in range(20):
        progress.Add(200)
      progress.StartWriting('train')
      self._time += 10.0
      self._Write(os.path.join(self._folder, 'x.tfrecord-00000-of-00001'), 1500)
      self.assertEqual(
        progress.Line(),
        'writing the files of train 25.0% 10 images 1 images/s ETA 30s',
      )
      self.assertEqual(progress.Summary(), '40 images in 1m30s')
    self.assertEqual(
      self._lines,
      [
        'reading train.tar',
        'reading train.tar: 40 images',
        'writing the files of train',
      ],
    )

  def testPrintsNowAndThen(self):
    with self._Progress(interval=0.01) as progress:
      progress.StartReading(self._archive)
      self._time += 1.0
      progress.Add(5000)
      deadline = time.monotonic() + 60.0
      while len(self._lines) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    self.assertGreaterEqual(len(self._lines), 3)
    self.assertEqual(
      set(self._lines[1:]),
      {'reading train.tar 50.0% 1 images 1 images/s ETA 1s'},
    )
    count = len(self._lines)
    time.sleep(0.1)
    self.assertLen(self._lines, count)


if __name__ == '__main__':
  absltest.main()
