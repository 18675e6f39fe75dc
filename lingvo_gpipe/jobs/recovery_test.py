"""Tests of recovery; the restart itself is mocked here.

trainer_cluster_test.py has real ones.
"""

import json
import os
from unittest import mock

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import graceful_stop, recovery
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.workers import worker_lost

_LOST = worker_lost.WorkerLostError('worker 1 refuses connections')


class RestartsTest(parameterized.TestCase):
  def testProgressBeginsTheCountAnew(self):
    restarts = recovery.Restarts()
    counts = []
    for step in (-1, -1, 10, 10, 10, 20):
      restarts = restarts.Next(step)
      counts.append(restarts.count)
    self.assertEqual(counts, [1, 2, 1, 2, 3, 1])

  def testDelays(self):
    delays = [recovery.Restarts(n, 0).delay for n in (1, 2, 3, 4, 20)]
    self.assertEqual(delays, [0.0, 1.0, 2.0, 4.0, 60.0])

  @parameterized.parameters('', 'x', '[]', '{"other": 1}', '3')
  def testAForeignVariableSaysNothing(self, text):
    self.assertEqual(
      recovery.Restarts.Read({recovery.VARIABLE: text}), recovery.Restarts()
    )


class RecoveryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._logdir = logdir_lib.LogDir(self.create_tempdir().full_path)
    os.makedirs(self._logdir.train_dir)
    self._stop = graceful_stop.GracefulStop()
    self._execv = self.enter_context(mock.patch.object(os, 'execv'))
    self.enter_context(mock.patch.dict(os.environ))
    os.environ.pop(recovery.VARIABLE, None)

  def _Recovery(self, max_restarts):
    return recovery.Recovery(max_restarts, self._logdir, self._stop)

  def testTheSameCommandAgain(self):
    self._Recovery(2).Restart(_LOST)
    (program, args), _ = self._execv.call_args
    self.assertEqual(program, args[0])
    self.assertTrue(os.access(program, os.X_OK))
    with open(f'/proc/{os.getpid()}/cmdline') as f:
      own = f.read().split('\0')[:-1]
    self.assertEqual(args[1:], own[1:])
    self.assertEqual(recovery.Restarts.Read(), recovery.Restarts(1, -1))
    with open(self._logdir.PathOf('restarts.jsonl')) as f:
      entry = json.loads(f.read())
    self.assertEqual(entry['reason'], 'worker 1 refuses connections')
    self.assertEqual((entry['from_step'], entry['in_a_row']), (0, 1))

  def testItEndsWhereItDoesNotHelp(self):
    with mock.patch.object(recovery.Restarts, 'delay', 0.0):
      for _ in range(2):
        self._Recovery(2).Restart(_LOST)
      with self.assertRaisesRegex(
        user_error.TrainingError,
        '^worker 1 refuses connections. That was after 2 restarts without a '
        r'new checkpoint \(--worker_restarts\). The same command goes on',
      ):
        self._Recovery(2).Restart(_LOST)
      # With a checkpoint since, it goes on.
      path = os.path.join(self._logdir.train_dir, 'ckpt-00000010.json')
      with open(path, 'w') as f:
        f.write('{}')
      self._Recovery(2).Restart(_LOST)
    self.assertEqual(self._execv.call_count, 3)
    self.assertEqual(recovery.Restarts.Read(), recovery.Restarts(1, 10))

  def testWhatWouldNotHelpIsNotTried(self):
    out_of_memory = worker_lost.WorkerLostError('no memory', comes_back=False)
    for max_restarts, error in ((0, _LOST), (5, out_of_memory)):
      with self.assertRaisesRegex(user_error.TrainingError, f'^{error}. The '):
        self._Recovery(max_restarts).Restart(error)
    self._execv.assert_not_called()

  def testAWishToStopComesFirst(self):
    with (
      mock.patch.object(graceful_stop.GracefulStop, 'requested', True),
      mock.patch.object(graceful_stop.GracefulStop, 'signal_name', 'SIGTERM'),
    ):
      with self.assertRaisesRegex(
        user_error.TrainingError, '^stopped by SIGTERM; .* nothing was saved'
      ):
        self._Recovery(5).Restart(_LOST)
    self._execv.assert_not_called()

  def testOwnWorkersEndFirst(self):
    recover = self._Recovery(2)
    workers = mock.Mock()
    recover.SetWorkers(workers)
    self._execv.side_effect = lambda *unused: workers.Kill.assert_called_once()
    recover.OnStuck('worker 0 stands still')
    self._execv.assert_called_once()


if __name__ == '__main__':
  absltest.main()
