"""Tests of remote_memory, with servers of their own."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import cluster
from lingvo_gpipe.workers import local_workers, remote_memory

_MIB = 2**20


class RemoteMemoryTest(absltest.TestCase):
  def testServersOfDevices(self):
    with local_workers.LocalWorkers(2) as workers:
      devices = cluster.Connect(workers.addresses).devices
      memory = remote_memory.RemoteMemory([*devices, '/device:CPU:0'])
      before = memory.Read()
      self.assertEqual(set(before), {0, 1})
      with tf.device(devices[1]):
        block = tf.Variable(tf.random.uniform([64 * _MIB // 4]))
      after = memory.Read()
      self.assertGreater(after[1].current, before[1].current + 60 * _MIB)
      self.assertGreaterEqual(after[1].peak, after[1].current)
      self.assertLess(after[0].current, before[0].current + 30 * _MIB)
      for k, usage in enumerate(workers.MemoryUsage()):
        self.assertLess(abs(usage.current - after[k].current), 10 * _MIB)
      del block

  def testOthersAreLeftOut(self):
    devices = [
      '/device:CPU:1',
      '/job:localhost/replica:0/task:0/device:GPU:0',
    ]
    self.assertEqual(remote_memory.RemoteMemory(devices).Read(), {})


if __name__ == '__main__':
  absltest.main()
