"""Tests of local_workers, with real processes on loopback."""

import os
import signal
import sys
import time
import weakref
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import cluster
from lingvo_gpipe.workers import local_workers

_MIB = 2**20


def _Fill(device, mebibytes):
  with tf.device(device):
    return tf.fill([mebibytes * _MIB // 4], 1.0)


def _ForgottenFunction():
  """A weak reference to a traced function in a cycle that nobody holds."""
  concrete = tf.function(lambda x: x + 1.0).get_concrete_function(
    tf.TensorSpec([], tf.float32)
  )
  cycle = [concrete]
  cycle.append(cycle)
  return weakref.ref(concrete)


class LocalWorkersTest(parameterized.TestCase):
  def testWork(self):
    log_dir = os.path.join(self.create_tempdir().full_path, 'logs')
    with self.assertRaises(local_workers.WorkerLostError) as lost:
      with local_workers.LocalWorkers(2, log_dir=log_dir) as workers:
        forgotten = _ForgottenFunction()
        connected = cluster.Connect(workers.addresses)
        self.assertIsNone(forgotten())
        self._CheckPlacement(workers, connected)
        self._CheckMemory(workers, connected)
        with open(os.path.join(log_dir, 'worker_1.log'), 'a') as log:
          log.write('last words\n')
        killed = time.monotonic()
        os.kill(workers.pids[1], signal.SIGKILL)
        with tf.device(connected.devices[1]):
          while True:
            tf.random.uniform([]).numpy()
    self.assertLess(time.monotonic() - killed, 60.0)
    self.assertRegex(
      str(lost.exception),
      rf'^worker 1 \({workers.addresses[1]}, process {workers.pids[1]}\) was '
      rf'ended by SIGKILL, .*; its log {log_dir}/worker_1.log ends with: .*'
      'last words$',
    )
    self.assertIsInstance(lost.exception.__cause__, tf.errors.OpError)
    for pid in workers.pids:
      self.assertFalse(os.path.exists(f'/proc/{pid}'))

  def _CheckPlacement(self, workers, connected):
    self.assertEqual(
      connected.devices,
      tuple(f'/job:worker/replica:0/task:{k}/device:CPU:0' for k in range(2)),
    )
    for pid, core in zip(workers.pids, workers.cores, strict=True):
      # Threads of the server too.
      for thread in os.listdir(f'/proc/{pid}/task'):
        self.assertEqual(os.sched_getaffinity(int(thread)), {core})
    matrix = tf.random.stateless_normal([8, 8], [1, 2])

    @tf.function
    def _Chain(x):
      for device in connected.devices:
        with tf.device(device):
          x = tf.tanh(tf.matmul(x, matrix))
      return x

    result = _Chain(matrix)
    self.assertEqual(result.device, connected.devices[1])
    returned = tf.function(cluster.ReturnToClient(_Chain))(matrix)
    self.assertStartsWith(returned.device, '/job:client/')
    expected = matrix
    for _ in connected.devices:
      expected = tf.tanh(tf.matmul(expected, matrix))
    self.assertAllEqual(result, expected)
    self.assertAllEqual(returned, expected)
    workers.Check()

  def assertAllEqual(self, a, b):
    self.assertTrue(bool(tf.reduce_all(tf.equal(a, b))))

  def _CheckMemory(self, workers, connected):
    before = workers.MemoryUsage()
    block = _Fill(connected.devices[0], 100)
    self.assertEqual(float(block[-1]), 1.0)
    during = workers.MemoryUsage()
    self.assertGreater(during[0].current, before[0].current + 90 * _MIB)
    self.assertLess(during[1].current, before[1].current + 50 * _MIB)
    del block
    workers.ResetPeakMemory()
    deadline = time.monotonic() + 60.0
    while workers.MemoryUsage()[0].peak > during[0].current - 90 * _MIB:
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.1)
      workers.ResetPeakMemory()

  def testMemoryLimit(self):
    # In a process that may have been the client of other workers before.
    with self.assertRaisesRegex(
      local_workers.WorkerLostError,
      r'^worker 0 \(.*ran out of its memory limit of 600 MiB '
      r'\(--worker_memory\).*; its log ends with: .*out of memory: \d+ MiB '
      'resident, 600 MiB allowed',
    ):
      with local_workers.LocalWorkers(1, memory_limit=600 * _MIB) as workers:
        device = cluster.Connect(workers.addresses).devices[0]
        self.assertLess(workers.MemoryUsage()[0].peak, 500 * _MIB)
        blocks = []
        while len(blocks) < 100:
          blocks.append(_Fill(device, 50))
          self.assertEqual(float(blocks[-1][-1]), 1.0)
          time.sleep(0.05)

  def testLimitThatIsTooLowToStart(self):
    with self.assertRaisesRegex(
      local_workers.WorkerLostError, 'memory limit of 50 MiB'
    ):
      with local_workers.LocalWorkers(1, memory_limit=50 * _MIB) as workers:
        for _ in range(100):
          self.assertLen(workers.addresses, 1)
          workers.Check(0.1)

  def testCannotStart(self):
    for program in ('/bin/false', '/bin/true'):
      with mock.patch.object(sys, 'executable', program):
        with local_workers.LocalWorkers(2) as workers:
          with self.assertRaisesRegex(
            local_workers.WorkerLostError,
            r'^the program that started the workers \(process \d+\) has ended '
            'with status [01], and they with it; its log is empty',
          ):
            print(workers.addresses)

  def testErrorOfTheBlockPasses(self):
    with self.assertRaisesRegex(KeyError, 'mine'):
      with local_workers.LocalWorkers(1) as workers:
        raise KeyError('mine')
    self.assertIsNotNone(workers._starter.poll())

  def testMoreWorkersThanCores(self):
    with mock.patch.object(os, 'sched_getaffinity', return_value={3, 5}):
      self.assertEqual(local_workers._Cores(2), [3, 5])
      with self.assertLogs(level='WARNING') as logs:
        self.assertEqual(local_workers._Cores(5), [3, 5, 3, 5, 3])
    self.assertIn('5 workers share 2 cores', logs.output[0])

  @parameterized.parameters(
    (0, None, 'num_workers=0'), (1, 0, 'memory_limit=0')
  )
  def testBadArguments(self, num_workers, memory_limit, message):
    with self.assertRaisesRegex(ValueError, message):
      local_workers.LocalWorkers(num_workers, memory_limit=memory_limit)


if __name__ == '__main__':
  absltest.main()
