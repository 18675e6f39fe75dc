"""Tests of remote_workers: servers of other processes, lost and found."""

import os
import signal

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import cluster
from lingvo_gpipe.workers import (
  free_ports,
  local_workers,
  remote_workers,
  worker_lost,
)


class RemoteWorkersTest(absltest.TestCase):
  def testALossIsNamed(self):
    with local_workers.LocalWorkers(2) as servers:
      with self.assertRaisesRegex(
        worker_lost.WorkerLostError,
        rf'^worker 1 at {servers.addresses[1]} \w+',
      ) as caught:
        with remote_workers.RemoteWorkers(servers.addresses) as workers:
          devices = cluster.Connect(workers.addresses).devices
          with tf.device(devices[1]):
            self.assertEqual(float(tf.constant(1.0) + 1.0), 2.0)
          self.assertEqual(
            workers.Describe()[1], f'worker 1 at {servers.addresses[1]}'
          )
          os.kill(servers.pids[1], signal.SIGKILL)
          with tf.device(devices[1]):
            while True:
              float(tf.constant(1.0) + 1.0)
      self.assertTrue(caught.exception.comes_back)
      self.assertIsInstance(caught.exception.__cause__, tf.errors.OpError)

  def testErrorsOfAProgramPassAsTheyAre(self):
    with local_workers.LocalWorkers(1) as servers:
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'my own'):
        with remote_workers.RemoteWorkers(servers.addresses) as workers:
          self.assertLen(workers.addresses, 1)
          raise tf.errors.InvalidArgumentError(None, None, 'my own')

  def testNobodyThere(self):
    (port,) = free_ports.FreePorts(1)
    address = f'127.0.0.1:{port}'
    lines = []
    with self.assertRaisesRegex(
      worker_lost.WorkerLostError,
      rf'^1 of 1 workers are not there after \d+ s \(--worker_wait\): worker 0 '
      rf'at {address} \(refuses connections\)',
    ) as caught:
      with remote_workers.RemoteWorkers(
        [address], wait_seconds=2.5, show=lines.append
      ) as workers:
        workers.addresses  # noqa: B018
    self.assertFalse(caught.exception.comes_back)
    self.assertEqual(
      lines, [f'waiting for worker 0 at {address} (refuses connections)']
    )

  def testAWishToStopEndsTheWait(self):
    (port,) = free_ports.FreePorts(1)
    with self.assertRaises(remote_workers.InterruptedWaitError):
      with remote_workers.RemoteWorkers(
        [f'127.0.0.1:{port}'], interrupted=lambda: True
      ) as workers:
        workers.addresses  # noqa: B018


if __name__ == '__main__':
  absltest.main()
