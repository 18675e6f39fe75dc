"""Tests of server_wait, with real servers and free ports."""

import time

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.workers import free_ports, server_wait, worker_probe


class AwaitTest(absltest.TestCase):
  def testAServerThatIsThereAndOneThatIsNot(self):
    server = tf.distribute.Server({'worker': ['127.0.0.1:0']}, start=True)
    there = server.target.removeprefix('grpc://')
    (port,) = free_ports.FreePorts(1)
    for ask in (
      worker_probe.WorkerProbe.Identity,
      worker_probe.WorkerProbe.CheckAlive,
    ):
      self.assertEmpty(server_wait.Await([there], 'host', ask=ask))
    lines = []
    missing = server_wait.Await(
      [there, f'127.0.0.1:{port}'],
      'host',
      wait_seconds=2.5,
      show=lines.append,
    )
    text = f'host 1 at 127.0.0.1:{port} (refuses connections)'
    self.assertEqual(missing, [text])
    self.assertEqual(lines, [f'waiting for {text}'])

  def testAWishToStopEndsTheWait(self):
    (port,) = free_ports.FreePorts(1)
    missing = server_wait.Await(
      [f'127.0.0.1:{port}'], 'host', interrupted=lambda: True
    )
    self.assertLen(missing, 1)


class TellingTest(absltest.TestCase):
  def testALineAtTheStartAndMoreWhileItLasts(self):
    lines = []
    with self.assertRaisesRegex(KeyError, 'passes'):
      with server_wait.Telling('asking', lines.append, every=0.05):
        while len(lines) < 3:
          time.sleep(0.01)
        raise KeyError('passes')
    self.assertEqual(lines[0], 'asking')
    self.assertRegex(lines[1], r'^still asking, for \d+ s$')
    count = len(lines)
    time.sleep(0.15)
    self.assertLen(lines, count)


if __name__ == '__main__':
  absltest.main()
