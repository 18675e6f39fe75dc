"""Tests of device_metrics."""

import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.jobs import device_metrics
from lingvo_gpipe.workers import (
  local_workers,
  process_memory,
  remote_memory,
)

_CPUS = ('/device:CPU:0', '/device:CPU:1')
# Two partitions, one micro-batch: 5 of 2 x 6 seconds are not computed.
_TIMES = [
  tf.constant([[0, 1, 2, 2, 4, 6]], tf.float64),
  tf.constant([[1, 3, 3, 3, 3, 5]], tf.float64),
]


def _Net(*replica_devices):
  stages = [mock.Mock(rematerialize='none')] * len(replica_devices[0])
  return mock.Mock(
    plan=mock.Mock(
      devices=replica_devices[0],
      replica_devices=replica_devices,
      schedule='1f1b',
      stages=stages,
    )
  )


def _Measure(net, workers=None, times=None):
  return device_metrics.DeviceMetrics(net, workers).Measure(times)


class DeviceMetricsTest(absltest.TestCase):
  def testBubble(self):
    measured = _Measure(_Net(_CPUS), times=_TIMES)
    self.assertAlmostEqual(measured['bubble'], 5 / 12)
    # Nothing took any time.
    nothing = [np.zeros([1, 6])] * 2
    self.assertNotIn('bubble', _Measure(_Net(_CPUS), times=nothing))
    self.assertNotIn('bubble', _Measure(_Net(_CPUS)))

  def testThisProcess(self):
    peak = process_memory.Read(os.getpid()).peak
    measured = _Measure(_Net(_CPUS))
    self.assertEqual(set(measured), {'memory_mib/trainer'})
    self.assertBetween(
      measured['memory_mib/trainer'], peak / 2**20, peak / 2**20 + 50
    )

  def testLocalWorkers(self):
    workers = mock.create_autospec(local_workers.LocalWorkers, instance=True)
    workers.MemoryUsage.return_value = [
      process_memory.Usage(current=1, peak=2**30),
      process_memory.Usage(current=1, peak=2**20),
    ]
    net = _Net([f'/job:worker/replica:0/task:{k}/device:CPU:0' for k in (0, 1)])
    measured = _Measure(net, workers)
    del measured['memory_mib/trainer']
    self.assertEqual(
      measured, {'memory_mib/worker_0': 1024.0, 'memory_mib/worker_1': 1.0}
    )
    workers.MemoryUsage.side_effect = ProcessLookupError('it has ended')
    self.assertEqual(set(_Measure(net, workers)), {'memory_mib/trainer'})

  def testWorkersOfOtherMachines(self):
    read = {0: process_memory.Usage(current=1, peak=2**30)}
    devices = ['/job:worker/replica:0/task:0/device:CPU:0']
    with mock.patch.object(
      remote_memory.RemoteMemory, 'Read', autospec=True, return_value=read
    ) as reader:
      measured = _Measure(_Net(devices))
      self.assertEqual(measured['memory_mib/worker_0'], 1024.0)
      # The next step tells that a worker is lost, this one does not.
      reader.side_effect = tf.errors.UnavailableError(None, None, 'gone')
      self.assertEqual(set(_Measure(_Net(devices))), {'memory_mib/trainer'})

  def testAcceleratorsOfThisProcess(self):
    asked = []

    def _MemoryInfo(device):
      asked.append(device)
      if device == 'GPU:1':
        raise ValueError('Allocator stats not available')
      return {'current': 5, 'peak': 3 * 2**20}

    net = _Net(
      ['/device:GPU:0', '/device:GPU:1', '/device:GPU:0'],
      [
        '/job:localhost/replica:0/task:0/device:TPU:2',
        '/job:worker/replica:0/task:0/device:GPU:3',
        '/device:CPU:0',
      ],
    )
    with (
      mock.patch.object(tf.config.experimental, 'get_memory_info', _MemoryInfo),
      mock.patch.object(remote_memory.RemoteMemory, 'Read', return_value={}),
    ):
      metrics = device_metrics.DeviceMetrics(net)
      for _ in range(2):
        measured = metrics.Measure(None)
        del measured['memory_mib/trainer']
        self.assertEqual(
          measured, {'memory_mib/GPU_0': 3.0, 'memory_mib/TPU_2': 3.0}
        )
    # A device that does not count is asked once.
    self.assertEqual(asked, ['GPU:0', 'GPU:1', 'TPU:2', 'GPU:0', 'TPU:2'])


if __name__ == '__main__':
  absltest.main()
