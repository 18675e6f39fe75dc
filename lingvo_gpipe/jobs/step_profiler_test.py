"""Tests of step_profiler."""

import glob

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.jobs import step_profiler


class StepProfilerTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._directory = self.create_tempdir().full_path
    self._lines = []

  def _Files(self):
    return glob.glob(f'{self._directory}/plugins/profile/*/*.xplane.pb')

  def _Profiler(self, steps):
    return step_profiler.StepProfiler(
      steps, self._directory, self._lines.append
    )

  def testTheWantedStepsAreRecorded(self):
    profiler = self._Profiler(range(2, 4))
    for step in range(5):
      with profiler.Step(step):
        tf.matmul(tf.ones([4, 4]), tf.ones([4, 4])).numpy()
      self.assertEqual(len(self._Files()), int(step >= 3), step)
    with open(self._Files()[0], 'rb') as f:
      self.assertIn(b'MatMul', f.read())
    self.assertRegex(self._lines[0], '^steps 2 to 3 are profiled: tensorboard ')

  def testAnErrorEndsTheRecording(self):
    profiler = self._Profiler(range(0, 3))
    with self.assertRaises(ZeroDivisionError):
      with profiler.Step(0):
        raise ZeroDivisionError()
    self.assertLen(self._Files(), 1)
    # It can be started again.
    for step in range(3):
      with profiler.Step(step):
        pass

  def testNone(self):
    profiler = self._Profiler(range(0))
    with profiler.Step(0):
      pass
    self.assertEmpty(self._Files())


if __name__ == '__main__':
  absltest.main()
