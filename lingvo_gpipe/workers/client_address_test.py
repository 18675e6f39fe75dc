"""Tests of client_address."""

import socket

from absl.testing import absltest, parameterized

from lingvo_gpipe.workers import client_address


class ClientAddressTest(parameterized.TestCase):
  @parameterized.parameters('127.0.0.1:2222', 'localhost:2222')
  def testOnOneMachine(self, worker):
    host, _, port = client_address.Choose(worker).rpartition(':')
    self.assertIn(host, ('127.0.0.1', '[::1]'))
    with socket.socket() as s:  # The port is free.
      s.bind(('', int(port)))

  def testWhatIsWantedIsTaken(self):
    self.assertEqual(
      client_address.Choose('10.0.0.1:1', '10.0.0.2:99'), '10.0.0.2:99'
    )
    self.assertRegex(
      client_address.Choose('10.0.0.1:1', 'trainer-0'), r'^trainer-0:\d+$'
    )

  def testUnknownHost(self):
    with self.assertRaisesRegex(
      ValueError, r'no way to the worker no-such-host.invalid:1 \(--worker_h'
    ):
      client_address.Choose('no-such-host.invalid:1')

  def testOnlyLoopbackIsRestricted(self):
    with socket.create_server(('0.0.0.0', 0)) as server:
      port = server.getsockname()[1]
      self.assertFalse(client_address.Restrict(f'10.0.0.1:{port}'))
      bound = server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
      self.assertEqual(bound.rstrip(b'\0'), b'')


if __name__ == '__main__':
  absltest.main()
