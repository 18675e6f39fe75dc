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
    # The client of a cluster.
    available = [prefix.format('client'), prefix.format('worker')]
    self.assertEqual(
      placement.LocalDevices(1, 'cpu', available), [available[0]]
    )

  def testSeveralPartitionsOnEachDevice(self):
    def _Devices(num_partitions):
      return placement.LocalDevices(
        num_partitions, 'gpu', _GPUS, partitions_per_device=2
      )

    self.assertEqual(_Devices(8), [*_GPUS, *_GPUS])
    with self.assertLogs(level='WARNING') as logs:
      self.assertEqual(_Devices(4), [*_GPUS[:2], *_GPUS[:2]])
    self.assertIn('give work to 2', logs.output[0])
    with self.assertRaisesRegex(
      ValueError, 'needs 5 devices for 2 partitions each, .* has 4 GPU'
    ):
      _Devices(10)
    with self.assertRaisesRegex(ValueError, 'num_partitions=3 .*multiple .* 2'):
      _Devices(3)

  def testReplicas(self):
    def _Devices(num_replicas, **kwargs):
      return placement.LocalDevices(
        2, 'gpu', _GPUS, num_replicas=num_replicas, **kwargs
      )

    self.assertEqual(_Devices(2), _GPUS)
    self.assertEqual(_Devices(4, partitions_per_device=2), [*_GPUS, *_GPUS])
    with self.assertRaisesRegex(
      ValueError,
      r'num_replicas=3 \(--worker_replicas\) of num_partitions=2 .*'
      'need 6 devices, but this process has 4 GPU',
    ):
      _Devices(3)

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
    self.assertRegex(
      logs.output[0],
      r'1 of 4 devices stay idle \(/device:GPU:3\): num_partitions .* '
      r'num_replicas .* to 3$',
    )
    with self.assertNoLogs(level='WARNING'):
      placement.LocalDevices(4, 'gpu', _GPUS)
      placement.LocalDevices(1, 'cpu', _CPUS)


def _Cores(*hosts, cores=2):
  return [
    f'/job:worker/replica:0/task:{host}/device:TPU:{core}'
    for host in hosts
    for core in range(cores)
  ]


class TpuDevicesTest(parameterized.TestCase):
  @parameterized.parameters((8, 1), (2, 4), (4, 2))
  def testHostAfterHost(self, num_partitions, num_replicas):
    expected = _Cores(0, 2, 3, 10)
    available = [
      '/device:CPU:0',
      *_Cores(10, 3, 0, 2),
      '/job:worker/replica:0/task:0/device:TPU_SYSTEM:0',
      '/job:worker/replica:0/task:0/device:CPU:0',
    ]
    devices = placement.TpuDevices(
      num_partitions, num_replicas, available, '--tpu=t'
    )
    self.assertEqual(devices, expected)
    replicas = placement.ReplicaDevices(devices, num_replicas, num_partitions)
    self.assertEqual(sum(replicas, []), expected)

  def testOfThisMachine(self):
    self.assertEqual(
      placement.TpuDevices(8, 1, [*_CPUS, *reversed(_TPUS)], '--tpu=local'),
      _TPUS,
    )

  def testTooFew(self):
    with self.assertRaisesRegex(
      ValueError,
      r'^num_replicas=3 \(--worker_replicas\) of num_partitions=2 '
      r'\(--worker_split_size\) need 6 TPU cores, but --tpu=t has 4, on 2 ',
    ):
      placement.TpuDevices(2, 3, _Cores(0, 1), '--tpu=t')
    with self.assertRaisesRegex(ValueError, 'has 0, on 0 hosts'):
      placement.TpuDevices(1, 1, _CPUS, '--tpu=t')

  def testWarnsOfIdleCores(self):
    with self.assertLogs(level='WARNING') as logs:
      placement.TpuDevices(3, 1, _Cores(0, 1), '--tpu=t')
    self.assertRegex(logs.output[0], r'1 of 4 devices .*task:1/device:TPU:1\)')


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


class ReplicaDevicesTest(absltest.TestCase):
  def testReplicaAfterReplica(self):
    self.assertEqual(
      placement.ReplicaDevices(_GPUS, 2, 2), [_GPUS[:2], _GPUS[2:]]
    )
    self.assertEqual(
      placement.ReplicaDevices(_GPUS, 2, 4, 2), [_GPUS[:2] * 2, _GPUS[2:] * 2]
    )
    self.assertEqual(placement.ReplicaDevices(_GPUS, 1, 3), [_GPUS[:3]])

  def testTooFew(self):
    with self.assertRaisesRegex(
      ValueError, '4 devices .* for num_replicas=3 .* num_partitions=2 .* 6;'
    ):
      placement.ReplicaDevices(_GPUS, 3, 2)

  def testInputDevice(self):
    self.assertEqual(placement.InputDevice(), '/device:CPU:0')


class CheckDevicesTest(parameterized.TestCase):
  def testPassThrough(self):
    devices = [
      '/job:worker/replica:0/task:3/device:TPU:1',
      '/job:worker/replica:0/task:4/device:TPU:0',
      '/device:GPU:7',
      '/device:TPU_REPLICATED_CORE:2',
    ]
    self.assertEqual(placement.CheckDevices(devices, 4), devices)
    self.assertEqual(placement.CheckDevices(devices, 2), devices[:2])

  @parameterized.parameters(
    ('/gpu:1', '/device:GPU:1'),
    ('cpu:0', '/device:CPU:0'),
    ('/device:tpu:01', '/device:TPU:1'),
    ('/job:w/task:2/cpu:0', '/job:w/replica:0/task:2/device:CPU:0'),
    (
      '/job:tpu_worker/replica:1/task:2/device:tpu:10',
      '/job:tpu_worker/replica:1/task:2/device:TPU:10',
    ),
    (
      '/job:worker/task:0/device:TPU_REPLICATED_CORE:0',
      '/job:worker/replica:0/task:0/device:TPU_REPLICATED_CORE:0',
    ),
  )
  def testOneSpelling(self, device, expected):
    self.assertEqual(placement.CheckDevices([device], 1), [expected])
    # TensorFlow reads both as the same, but for what was left open.
    spec = tf.DeviceSpec.from_string(expected)
    self.assertEqual(spec.to_string(), expected)
    self.assertEqual(
      tf.DeviceSpec.from_string(device).make_merged_spec(spec), spec
    )

  @parameterized.parameters(
    ('/device:GPU', 'does not name one device'),
    ('/device:GPU:*', 'does not name one device'),
    ('/job:worker/task:1', 'does not name one device'),
    ('gpu number 1', 'does not name one device'),
    ('/device:GPU:x', 'does not name one device'),
    ('/device:GPU:-1', 'does not name one device'),
    ('/device:GPU:0 ', 'does not name one device'),
    ('/device:GPU:0/device:GPU:1', 'does not name one device'),
    ('/job:a/job:b/task:0/device:GPU:0', 'does not name one device'),
    ('/job:/task:0/device:GPU:0', 'does not name one device'),
    ('/job:worker/task:x/device:GPU:0', 'does not name one device'),
    ('10.0.0.1:8470', 'does not name one device'),
    ('', 'does not name one device'),
    ('/job:worker/device:GPU:0', 'names a task without its job, or a job'),
    ('/task:1/device:GPU:0', 'names a task without its job, or a job'),
    ('/device:TPU_SYSTEM:0', 'cannot be on a device of type TPU_SYSTEM'),
    ('/device:ABACUS:0', 'use one of CPU, GPU, TPU, TPU_REPLICATED_CORE'),
  )
  def testBadDevice(self, device, message):
    with self.assertRaisesRegex(
      ValueError, f'^{re.escape(repr(device))}.*{message}'
    ):
      placement.CheckDevices([device], 1)

  def testDeviceOfAPlugIn(self):
    plugged_in = [tf.config.PhysicalDevice('/physical_device:NPU:0', 'NPU')]
    with mock.patch.object(
      tf.config, 'list_physical_devices', return_value=plugged_in
    ):
      self.assertEqual(
        placement.CheckDevices(['/device:npu:1'], 1), ['/device:NPU:1']
      )

  def testTooFew(self):
    with self.assertRaisesRegex(
      ValueError, '1 devices .*for num_partitions=2 .--worker_split_size'
    ):
      placement.CheckDevices(['/device:CPU:0'], 2)

  def testSeveralPartitionsOnEachDevice(self):
    expected = [*_GPUS[:3], *_GPUS[:3]]
    for given in (_GPUS[:3], _GPUS, expected):
      self.assertEqual(placement.CheckDevices(given, 6, 2), expected)
    with self.assertRaisesRegex(
      ValueError, '1 devices .* 2 partitions on each need 3 devices'
    ):
      placement.CheckDevices(_GPUS[:1], 6, 2)
    with self.assertRaisesRegex(ValueError, 'num_partitions=6 .*multiple .* 4'):
      placement.CheckDevices(_GPUS, 6, 4)


if __name__ == '__main__':
  absltest.main()
