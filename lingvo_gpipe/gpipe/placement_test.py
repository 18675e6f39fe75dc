"""Tests for placement."""

from __future__ import annotations

import re
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe import placement

_CPUS = ['/device:CPU:0', '/device:CPU:1']
_GPUS = [f'/device:GPU:{i}' for i in range(4)]
_TPUS = [f'/device:TPU:{i}' for i in range(8)]


def setUpModule():
  placement.ConfigureLogicalCpus(3)


class LocalDevicesTest(parameterized.TestCase):
  @parameterized.parameters(
    (2, 'cpu', _CPUS),
    (2, 'gpu', _GPUS[:2]),
    (8, 'tpu', _TPUS),
    (4, '', _TPUS[:4]),
  )
  def testKinds(self, num_partitions, run_locally, expected):
    available = [*_CPUS, *_GPUS, '/device:TPU_SYSTEM:0', *_TPUS]
    self.assertEqual(
      placement.LocalDevices(num_partitions, run_locally, available), expected
    )

  def testBestKindThatIsEnough(self):
    available = ['/device:GPU:0', *_CPUS]
    self.assertEqual(
      placement.LocalDevices(1, available=available), ['/device:GPU:0']
    )
    self.assertEqual(placement.LocalDevices(2, available=available), _CPUS)

  def testOrderIsByIndexNotByName(self):
    available = [f'/device:TPU:{i}' for i in (10, 2, 0, 1)]
    self.assertEqual(
      placement.LocalDevices(4, 'tpu', available),
      [f'/device:TPU:{i}' for i in (0, 1, 2, 10)],
    )

  def testDevicesOfOtherTasksAreNotLocal(self):
    prefix = '/job:{}/replica:0/task:0/device:CPU:0'
    available = [prefix.format('localhost'), prefix.format('worker')]
    self.assertEqual(
      placement.LocalDevices(1, 'cpu', available), [available[0]]
    )
    with self.assertRaisesRegex(ValueError, 'this process has 1 CPU'):
      placement.LocalDevices(2, 'cpu', available)

  def testTooFew(self):
    with self.assertRaisesRegex(
      ValueError, r'num_partitions=5 \(--worker_split_size\).*has 4 GPU'
    ):
      placement.LocalDevices(5, 'gpu', [*_CPUS, *_GPUS])
    with self.assertRaisesRegex(
      ValueError, r'0 TPU, 4 GPU, 2 CPU.*ConfigureLogicalCpus\(5\)'
    ):
      placement.LocalDevices(5, '', [*_CPUS, *_GPUS])

  def testUnknownKind(self):
    with self.assertRaisesRegex(ValueError, 'must be cpu, gpu or tpu'):
      placement.LocalDevices(1, 'abacus', _CPUS)

  def testWarnsOfIdleAccelerators(self):
    with self.assertLogs(level='WARNING') as logs:
      placement.LocalDevices(3, 'gpu', _GPUS)
    self.assertIn(
      '1 of 4 devices stay idle (/device:GPU:3): num_partitions=3',
      logs.output[0],
    )
    with self.assertNoLogs(level='WARNING'):
      placement.LocalDevices(4, 'gpu', _GPUS)
      placement.LocalDevices(1, 'cpu', _CPUS)


class ConfigureLogicalCpusTest(absltest.TestCase):
  def testDevicesExistAndCompute(self):
    devices = placement.LocalDevices(3, 'cpu')
    self.assertEqual(devices, [f'/device:CPU:{i}' for i in range(3)])
    with tf.device(devices[2]):
      self.assertEndsWith(tf.identity(1.0).device, 'CPU:2')

  def testAfterInitialisation(self):
    tf.constant(0.0)
    placement.ConfigureLogicalCpus(3)
    with self.assertRaisesRegex(
      RuntimeError, '4 logical CPU devices are needed.*initialised with 3'
    ):
      placement.ConfigureLogicalCpus(4)

  def testKeepsAMoreGenerousConfiguration(self):
    with mock.patch.object(
      tf.config, 'set_logical_device_configuration'
    ) as setter:
      placement.ConfigureLogicalCpus(2)
    setter.assert_not_called()


class CheckDevicesTest(parameterized.TestCase):
  def testPassThrough(self):
    devices = [
      '/job:worker/replica:0/task:3/device:TPU:1',
      '/job:worker/replica:0/task:4/device:TPU:0',
      '/device:GPU:7',
    ]
    self.assertEqual(placement.CheckDevices(devices, 3), devices)
    self.assertEqual(placement.CheckDevices(devices, 2), devices[:2])

  def testOneSpelling(self):
    self.assertEqual(
      placement.CheckDevices(['/gpu:1', '/job:w/task:2/cpu:0'], 2),
      ['/device:GPU:1', '/job:w/task:2/device:CPU:0'],
    )

  @parameterized.parameters(
    ('/device:GPU', 'is not a device'),
    ('/device:GPU:*', 'does not name one device'),
    ('/job:worker/task:1', 'does not name one device'),
    ('gpu number 1', 'is not a device'),
    ('/device:GPU:x', 'is not a device'),
  )
  def testBadDevice(self, device, message):
    with self.assertRaisesRegex(ValueError, re.escape(f'{device!r} {message}')):
      placement.CheckDevices([device], 1)

  def testTooFew(self):
    with self.assertRaisesRegex(
      ValueError, '1 devices .*for num_partitions=2 .--worker_split_size'
    ):
      placement.CheckDevices(['/device:CPU:0'], 2)


if __name__ == '__main__':
  absltest.main()
