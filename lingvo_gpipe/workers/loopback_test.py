"""Tests of loopback."""

import socket

from absl.testing import absltest, parameterized

from lingvo_gpipe.workers import loopback


class LoopbackTest(parameterized.TestCase):
  @parameterized.parameters('localhost', '127.0.0.1', '127.3.2.1', '::1')
  def testIsLoopback(self, host):
    self.assertTrue(loopback.IsLoopback(host))
    self.assertTrue(loopback.IsLoopback(f'[{host}]' if ':' in host else host))

  @parameterized.parameters('10.0.0.1', 'worker-0', '::', '0.0.0.0', '')
  def testIsNotLoopback(self, host):
    self.assertFalse(loopback.IsLoopback(host))

  def testARestrictedPortIsBoundToTheInterface(self):
    with socket.create_server(('0.0.0.0', 0)) as server:
      port = server.getsockname()[1]
      if not loopback.Restrict(port):
        self.skipTest('this system does not let a process bind to an interface')
      bound = server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
      self.assertEqual(bound.rstrip(b'\0'), b'lo')
      # From this machine it is reached as before.
      with socket.create_connection(('127.0.0.1', port), timeout=5):
        pass

  def testOtherPortsStayAsTheyAre(self):
    with (
      socket.create_server(('0.0.0.0', 0)) as one,
      socket.create_server(('0.0.0.0', 0)) as other,
    ):
      loopback.Restrict(one.getsockname()[1])
      bound = other.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
      self.assertEqual(bound.rstrip(b'\0'), b'')

  def testAPortOfNobody(self):
    with socket.create_server(('127.0.0.1', 0)) as server:
      port = server.getsockname()[1]
    self.assertFalse(loopback.Restrict(port))


if __name__ == '__main__':
  absltest.main()
