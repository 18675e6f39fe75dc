"""Tests of worker_server: a process that stays when its server dies."""

import os
import re
import signal
import socket
import subprocess
import time

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.workers import (
  free_ports,
  test_processes,
  worker_probe,
  worker_server,
)

_PROGRAM = """
import sys
from lingvo_gpipe.workers import worker_server
sys.exit(worker_server.WorkerServer(
    [sys.argv[1]], 0, threads=1, show=lambda line: print(line, flush=True)
).Run())
"""


class WorkerServerTest(parameterized.TestCase):
  def _Start(self, address):
    process = test_processes.Start(_PROGRAM, address, stderr=subprocess.PIPE)
    self.addCleanup(process.stdout.close)
    self.addCleanup(process.stderr.close)
    self.addCleanup(process.wait)
    self.addCleanup(process.kill)
    return process

  def _ServerPid(self, process, address):
    line = process.stdout.readline()
    match = re.fullmatch(
      rf'worker 0 of 1 listens at {address} \(this machine only\), process '
      r'(\d+)\n',
      line,
    )
    self.assertIsNotNone(match, f'{line!r}')
    return int(match[1])

  def testAServerThatDiesIsReplacedAtItsAddress(self):
    (port,) = free_ports.FreePorts(1)
    address = f'localhost:{port}'
    process = self._Start(address)
    first = self._ServerPid(process, address)
    probe = worker_probe.WorkerProbe(address)
    self.addCleanup(probe.Close)
    identity = probe.Identity(60.0)
    os.kill(first, signal.SIGKILL)
    second = self._ServerPid(process, address)
    self.assertNotEqual(second, first)
    deadline = time.monotonic() + 60.0
    while True:  # The connection breaks first.
      try:
        self.assertNotEqual(probe.Identity(5.0), identity)
        break
      except worker_probe.ProbeError:
        self.assertLess(time.monotonic(), deadline)
        time.sleep(0.1)
    self.assertIn('ended by SIGKILL', process.stderr.readline())

    process.send_signal(signal.SIGTERM)
    self.assertEqual(process.wait(60.0), 143)
    self.assertEqual(
      process.stdout.read(), 'worker 0 of 1 stopped by SIGTERM\n'
    )
    self.assertFalse(test_processes.IsAlive(second))

  def testTheServerEndsWithItsParent(self):
    (port,) = free_ports.FreePorts(1)
    address = f'localhost:{port}'
    process = self._Start(address)
    server = self._ServerPid(process, address)
    process.kill()
    deadline = time.monotonic() + 60.0
    while test_processes.IsAlive(server):
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.05)

  def testATakenPort(self):
    with socket.create_server(('', 0)) as server:
      port = server.getsockname()[1]
      with self.assertRaisesRegex(
        user_error.UserError,
        rf'^worker 0 of 1 cannot listen at localhost:{port}: Address already',
      ):
        worker_server.WorkerServer([f'localhost:{port}'], 0)

  def testAnotherMachinesAddressMustBeWanted(self):
    hosts = ['10.0.0.1:2222', '10.0.0.2:2222']
    with self.assertRaisesRegex(
      user_error.UserError, 'worker 1 of 2 is 10.0.0.2.*--worker_listen=network'
    ):
      worker_server.WorkerServer(hosts, 1)

  @parameterized.parameters(2, -1)
  def testATaskThatIsNotThere(self, task):
    with self.assertRaisesRegex(
      user_error.UserError, f'--worker_task={task} is none of the 2 .* 0 to 1$'
    ):
      worker_server.WorkerServer(['localhost:1', 'localhost:2'], task)


if __name__ == '__main__':
  absltest.main()
