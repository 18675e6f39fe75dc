"""Tests of emulated_hosts, where the system allows them."""

import subprocess
import sys
import time
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import user_error
from tools.benchmarks import emulated_hosts

_SERVER = """
import socket
with socket.create_server(('', 7000)) as s:
  print('ready', flush=True)
  while True:
    c, _ = s.accept()
    c.sendall(b'x' * 250_000)
    c.close()
"""
_CLIENT = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 7000), timeout=5)
started, size = time.monotonic(), 0
while data := s.recv(1 << 16):
  size += len(data)
print(size, time.monotonic() - started)
"""


class EmulatedHostsTest(absltest.TestCase):
  def _Hosts(self, *args, **kwargs):
    try:
      return self.enter_context(emulated_hosts.EmulatedHosts(*args, **kwargs))
    except user_error.UserError as e:
      self.skipTest(str(e))

  def _Serve(self, hosts):
    server = subprocess.Popen(
      hosts.Command(1, [sys.executable, '-c', _SERVER]),
      stdout=subprocess.PIPE,
    )
    self.addCleanup(server.stdout.close)
    self.addCleanup(server.wait)
    self.addCleanup(server.kill)
    self.assertEqual(server.stdout.readline(), b'ready\n')

  def _Fetch(self, hosts):
    """(bytes, seconds) from host 1 to host 0; None where it is not reached."""
    result = subprocess.run(
      hosts.Command(0, [sys.executable, '-c', _CLIENT, hosts.Address(1)]),
      capture_output=True,
      text=True,
      check=False,
    )
    return [float(x) for x in result.stdout.split()] or None

  def testHostsReachEachOtherUnlessCut(self):
    hosts = self._Hosts(2)
    self._Serve(hosts)
    self.assertEqual(self._Fetch(hosts)[0], 250_000)
    hosts.Cut(1)
    self.assertIsNone(self._Fetch(hosts))
    hosts.Join(1)
    deadline = time.monotonic() + 20.0
    while self._Fetch(hosts) is None:
      self.assertLess(time.monotonic(), deadline)

  def testSlowLinks(self):
    hosts = self._Hosts(2, bits_per_second=4e6)
    self._Serve(hosts)
    size, seconds = self._Fetch(hosts)
    # 2 Mbit take half a second on such a link; buffers hold some of it.
    self.assertEqual(size, 250_000)
    self.assertGreater(seconds, 0.2)

  def testOnlyForRoot(self):
    with mock.patch('os.geteuid', return_value=1000):
      with self.assertRaisesRegex(user_error.UserError, 'by root only'):
        with emulated_hosts.EmulatedHosts(2):
          pass

  def testNumber(self):
    with self.assertRaisesRegex(ValueError, 'num_hosts=0'):
      emulated_hosts.EmulatedHosts(0)


if __name__ == '__main__':
  absltest.main()
