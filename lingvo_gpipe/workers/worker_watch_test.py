"""Tests of worker_watch, on real servers."""

import os
import signal
import threading
import time

from absl.testing import absltest

from lingvo_gpipe.workers import local_workers, worker_probe, worker_watch


class WorkerWatchTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._workers = self.enter_context(local_workers.LocalWorkers(2))
    self._stuck = []
    self._called = threading.Event()

  def _Watch(self, lost_seconds):
    watch = worker_watch.WorkerWatch(
      self._workers.addresses,
      lost_seconds=lost_seconds,
      on_stuck=self._OnStuck,
    )
    watch.Start()
    self.addCleanup(watch.Stop)
    return watch

  def _OnStuck(self, text):
    self._stuck.append(text)
    self._called.set()

  def testKilled(self):
    watch = self._Watch(60.0)
    self.assertEqual(watch.FindLost(0.0), '')
    os.kill(self._workers.pids[1], signal.SIGKILL)
    address = self._workers.addresses[1]
    # Long before the 60 seconds.
    self.assertTrue(self._called.wait(60.0))
    self.assertLen(self._stuck, 1)
    self.assertStartsWith(self._stuck[0], f'worker 1 at {address} ')
    self.assertEqual(watch.FindLost(0.0), self._stuck[0])

  def testStopped(self):
    watch = self._Watch(3.0)
    os.kill(self._workers.pids[0], signal.SIGSTOP)
    self.assertTrue(self._called.wait(60.0))
    self.assertRegex(
      self._stuck[0],
      r'^worker 0 at .* has not answered for [\d.]+ s: it stands still',
    )
    os.kill(self._workers.pids[0], signal.SIGCONT)
    # What was lost stays lost: its clients' work is.
    self.assertNotEqual(watch.FindLost(1.0), '')

  def testAClientThatNoticesByItselfIsLeftAlone(self):
    watch = self._Watch(60.0)
    os.kill(self._workers.pids[0], signal.SIGKILL)
    self.assertStartsWith(watch.FindLost(60.0), 'worker 0 at ')
    watch.Stop()
    self.assertFalse(self._called.wait(5.0))

  def testNobodyThere(self):
    os.kill(self._workers.pids[0], signal.SIGKILL)
    with self.assertRaises(worker_probe.ProbeError):
      while True:
        self._Watch(60.0).Stop()
        time.sleep(0.05)


if __name__ == '__main__':
  absltest.main()
