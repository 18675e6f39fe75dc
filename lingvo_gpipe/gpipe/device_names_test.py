"""Tests for device_names."""

from __future__ import annotations

from absl.testing import absltest

from lingvo_gpipe.gpipe import device_names


class DeviceNamesTest(absltest.TestCase):
  def testWorkers(self):
    self.assertEqual(
      device_names.WorkerDevices(2, 'tpu', devices_per_worker=2),
      [
        '/job:worker/replica:0/task:0/device:TPU:0',
        '/job:worker/replica:0/task:0/device:TPU:1',
        '/job:worker/replica:0/task:1/device:TPU:0',
        '/job:worker/replica:0/task:1/device:TPU:1',
      ],
    )

  def testHost(self):
    self.assertEqual(device_names.HostOf('/device:GPU:1'), '')
    self.assertEqual(
      device_names.HostOf('/job:worker/task:3/device:TPU:1'),
      '/job:worker/replica:0/task:3/device:CPU:0',
    )

  def testSortedByTaskAndIndexAsNumbers(self):
    devices = device_names.WorkerDevices(11, 'gpu', devices_per_worker=11)
    self.assertEqual(device_names.Sorted(sorted(devices)), devices)
    self.assertEqual(
      device_names.Sorted(
        ['/job:b/task:0/cpu:0', '/job:a/task:1/cpu:0', '/gpu:0']
      ),
      [
        '/device:GPU:0',
        '/job:a/replica:0/task:1/device:CPU:0',
        '/job:b/replica:0/task:0/device:CPU:0',
      ],
    )


if __name__ == '__main__':
  absltest.main()
