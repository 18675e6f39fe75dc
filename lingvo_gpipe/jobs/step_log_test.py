"""Tests of step_log."""

import os
import resource

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.jobs import step_log


def _Records(*steps):
  return [{'step': s, 'loss': 1 / (s + 1)} for s in steps]


class StepLogTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._path = os.path.join(self.create_tempdir().full_path, 'metrics.jsonl')

  def testReadsBackTheSameBits(self):
    losses = np.float32([1 / 3, 2.3147855, 1e-38, 3e38])
    step_log.StepLog(self._path, 0).Append(
      {'step': i, 'loss': float(x)} for i, x in enumerate(losses)
    )
    read = np.float32([r['loss'] for r in step_log.Read(self._path)])
    self.assertEqual(read.tobytes(), losses.tobytes())

  def testWhatCouldNotBeWrittenComesLater(self):
    log = step_log.StepLog(self._path, 0)
    log.Append(_Records(1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, limits[1]))
    try:
      with self.assertRaisesRegex(OSError, 'too large'):
        log.Append(_Records(2, 3))
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    self.assertEqual(step_log.Read(self._path), _Records(1))
    log.Append(_Records(4))
    self.assertEqual(step_log.Read(self._path), _Records(1, 2, 3, 4))

  def testNotFiniteBecomesNull(self):
    log = step_log.StepLog(self._path, 0)
    log.Append([{'step': 1, 'loss': float('nan'), 'norm': float('inf')}])
    self.assertEqual(
      step_log.Read(self._path), [{'step': 1, 'loss': None, 'norm': None}]
    )

  def testRestartCutsOffWhatRunsAgain(self):
    step_log.StepLog(self._path, 0).Append(_Records(1, 2, 3, 4, 5))
    log = step_log.StepLog(self._path, 3)
    self.assertEqual(step_log.Read(self._path), _Records(1, 2, 3))
    log.Append(_Records(4))
    log.Append(_Records(5, 6))
    self.assertEqual(step_log.Read(self._path), _Records(1, 2, 3, 4, 5, 6))

  @parameterized.parameters('{"step": 3, "lo', '{"step": 3}', 'x\n', '[]\n')
  def testRestartCutsOffABrokenEnd(self, end):
    step_log.StepLog(self._path, 0).Append(_Records(1, 2))
    with open(self._path, 'a') as f:
      f.write(end)
    step_log.StepLog(self._path, 10)
    self.assertEqual(step_log.Read(self._path), _Records(1, 2))

  def testRestartFromNothingEmptiesIt(self):
    step_log.StepLog(self._path, 0).Append(_Records(1, 2))
    step_log.StepLog(self._path, 0)
    self.assertEqual(step_log.Read(self._path), [])


if __name__ == '__main__':
  absltest.main()
