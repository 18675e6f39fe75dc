"""Tests of worker_probe, on real servers."""

import os
import signal
import socket

from absl.testing import absltest

from lingvo_gpipe.workers import local_workers, worker_probe


class WorkerProbeTest(absltest.TestCase):
  def _Probe(self, address):
    probe = worker_probe.WorkerProbe(address)
    self.addCleanup(probe.Close)
    return probe

  def testServers(self):
    with local_workers.LocalWorkers(2) as workers:
      one, other = (self._Probe(address) for address in workers.addresses)
      identity = one.Identity(60.0)
      self.assertEqual(one.Identity(60.0), identity)
      self.assertNotEqual(other.Identity(60.0), identity)
      one.CheckAlive(60.0)

      os.kill(workers.pids[0], signal.SIGSTOP)
      with self.assertRaisesRegex(
        worker_probe.ProbeError, '^does not answer within 0.3 s$'
      ):
        one.Identity(0.3)
      with self.assertRaises(worker_probe.ProbeError):
        one.CheckAlive(0.3)
      os.kill(workers.pids[0], signal.SIGCONT)
      one.CheckAlive(60.0)

      os.kill(workers.pids[1], signal.SIGKILL)
      # Until the process has gone, the connection breaks in other ways.
      error = None
      while not isinstance(error, worker_probe.RefusedError):
        with self.assertRaises(worker_probe.ProbeError) as caught:
          while True:
            other.Identity(60.0)
        error = caught.exception

  def testNobodyThere(self):
    with socket.create_server(('127.0.0.1', 0)) as server:
      port = server.getsockname()[1]
    with self.assertRaisesRegex(
      worker_probe.RefusedError, '^refuses connections$'
    ):
      self._Probe(f'127.0.0.1:{port}').Identity(60.0)

  def testAServerOfAnotherKindNeverAnswers(self):
    with socket.create_server(('127.0.0.1', 0)) as server:
      port = server.getsockname()[1]
      with self.assertRaises(worker_probe.ProbeError):
        self._Probe(f'127.0.0.1:{port}').CheckAlive(0.3)

  def testUnknownHost(self):
    with self.assertRaises(worker_probe.ProbeError):
      self._Probe('no-such-host.invalid:1').Identity(60.0)


if __name__ == '__main__':
  absltest.main()
