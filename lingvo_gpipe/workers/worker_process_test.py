"""Tests that worker processes do not outlive the one that started them."""

import os
import signal
import time

from absl.testing import absltest

from lingvo_gpipe.workers import test_processes, worker_process

_OWNER = """
import os, sys, time
from lingvo_gpipe.workers import local_workers
with local_workers.LocalWorkers(2, log_dir=sys.argv[1]) as workers:
  print(workers._starter.pid, flush=True)
  if sys.argv[2] == 'serve':
    print(*workers.pids, flush=True)
  time.sleep(600)
"""
_SECONDS = 60.0


class WorkerProcessTest(absltest.TestCase):
  def _Owner(self, what):
    """A process that starts workers, and theirs."""
    owner = test_processes.Start(_OWNER, self.create_tempdir().full_path, what)
    self.addCleanup(owner.stdout.close)
    self.addCleanup(owner.wait)
    self.addCleanup(owner.kill)
    pids = [int(owner.stdout.readline())]
    if what == 'serve':
      pids += map(int, owner.stdout.readline().split())
      self.assertLen(set(pids), 3)
    return owner, pids

  def _AssertEnd(self, pids):
    deadline = time.monotonic() + _SECONDS
    while any(map(test_processes.IsAlive, pids)):
      self.assertLess(time.monotonic(), deadline, 'processes were left')
      time.sleep(0.05)

  def testEndWithTheOwner(self):
    owner, pids = self._Owner('serve')
    for pid in pids[1:]:
      # Sent to a whole group of processes, these are for the owner.
      os.kill(pid, signal.SIGTERM)
      os.kill(pid, signal.SIGINT)
    time.sleep(0.2)
    self.assertTrue(all(map(test_processes.IsAlive, pids)))
    owner.kill()
    self._AssertEnd(pids)

  def testEndWithTheOwnerWhileStarting(self):
    owner, pids = self._Owner('start')
    self.assertTrue(test_processes.IsAlive(pids[0]))
    owner.kill()
    self._AssertEnd(pids)

  def testEndByException(self):
    owner, pids = self._Owner('start')
    owner.send_signal(signal.SIGINT)
    self.assertNotEqual(owner.wait(_SECONDS), 0)
    self.assertFalse(test_processes.IsAlive(pids[0]))

  def testEndWithTheStarter(self):
    owner, pids = self._Owner('serve')
    os.kill(pids[0], signal.SIGKILL)
    self._AssertEnd(pids)
    self.assertIsNone(owner.poll())

  def testBadArguments(self):
    with self.assertRaises(SystemExit):
      worker_process.Main(['--cores=0'])


if __name__ == '__main__':
  absltest.main()
