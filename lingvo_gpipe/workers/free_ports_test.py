"""Tests of free_ports."""

import contextlib
import os
import socket
from unittest import mock

from absl.testing import absltest, parameterized

from lingvo_gpipe.workers import free_ports


class FreePortsTest(parameterized.TestCase):
  def testServersCanTakeThem(self):
    ports = free_ports.FreePorts(5)
    self.assertLen(set(ports), 5)
    with contextlib.ExitStack() as stack:
      for port in ports:
        stack.enter_context(socket.create_server(('127.0.0.1', port)))

  def testConnectionsDoNotTakeThem(self):
    path = os.path.join(self.create_tempdir().full_path, 'range')
    with open(path, 'w') as f:
      f.write('30000\t60999\n')
    with mock.patch.object(free_ports, '_EPHEMERAL', path):
      for port in free_ports.FreePorts(20):
        self.assertBetween(port, 10_000, 29_999)

  @parameterized.parameters('/no/such/file', '/dev/null')
  def testWhereNothingIsKnown(self, path):
    with mock.patch.object(free_ports, '_EPHEMERAL', path):
      self.assertLen(set(free_ports.FreePorts(3)), 3)

  def testNone(self):
    self.assertEmpty(free_ports.FreePorts(0))


if __name__ == '__main__':
  absltest.main()
