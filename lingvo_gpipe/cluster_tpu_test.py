"""Tests of cluster.Tpus: made-up TPUs, and a real server that has none."""

from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.workers import client_address, free_ports, server_wait

_NAME = 'grpc://127.0.0.1:8470,grpc://127.0.0.1:8471'


def _Devices(num_hosts, cores=4):
  """What TensorFlow lists of a TPU with some hosts, in no order."""
  names = [
    f'/job:worker/replica:0/task:{host}/device:TPU:{core}'
    for core in reversed(range(cores))
    for host in range(num_hosts)
  ]
  return [tf.config.LogicalDevice(name, 'TPU') for name in names]


class TpusTest(parameterized.TestCase):
  def _Enter(self, owner, name, **kwargs):
    return self.enter_context(mock.patch.object(owner, name, **kwargs))

  def setUp(self):
    super().setUp()
    self._lines = []
    # The order of calls counts, too.
    self._calls = mock.Mock()
    self._calls.wait.return_value = []
    self._calls.list.return_value = _Devices(2)
    self._Enter(server_wait, 'Await', new=self._calls.wait)
    self._Enter(
      tf.config, 'experimental_connect_to_cluster', new=self._calls.connect
    )
    self._Enter(client_address, 'Restrict', new=self._calls.restrict)
    self._Enter(
      tf.tpu.experimental,
      'initialize_tpu_system',
      new=self._calls.initialize,
    )
    self._Enter(tf.config, 'list_logical_devices', new=self._calls.list)

  def _Tpus(self, *args, **kwargs):
    return cluster.Tpus(*args, show=self._lines.append, **kwargs)

  def _Order(self):
    return [call[0] for call in self._calls.mock_calls]

  @parameterized.parameters((8, 1), (2, 4), (3, 2))
  def testCoresOfAllHostsInOrder(self, num_partitions, num_replicas):
    found = self._Tpus(_NAME, num_partitions, num_replicas)
    self.assertEqual(found.kind, 'tpu')
    expected = [
      f'/job:worker/replica:0/task:{host}/device:TPU:{core}'
      for host in range(2)
      for core in range(4)
    ]
    self.assertSequenceEqual(
      found.devices, expected[: num_partitions * num_replicas]
    )

  def testWaitsConnectsInitializes(self):
    self._Tpus(_NAME, 1, client='127.0.0.1:99', wait_seconds=7.0)
    self.assertEqual(
      self._Order(), ['wait', 'connect', 'restrict', 'initialize', 'list']
    )
    hosts = ['127.0.0.1:8470', '127.0.0.1:8471']
    args, kwargs = self._calls.wait.call_args
    self.assertEqual(args, (hosts, 'TPU host'))
    self.assertEqual(kwargs['wait_seconds'], 7.0)
    (resolver,), kwargs = self._calls.connect.call_args
    self.assertEqual(
      resolver.cluster_spec().as_dict(),
      {'worker': hosts, 'client': ['127.0.0.1:99']},
    )
    self.assertEqual(kwargs['job_name'], 'client')
    self._calls.initialize.assert_called_once_with(resolver)
    self.assertEqual(
      self._lines,
      [
        f'looking for --tpu={_NAME}',
        f'connecting to --tpu={_NAME} at {", ".join(hosts)}',
      ],
    )

  def testOfThisMachine(self):
    self._calls.list.return_value = [
      tf.config.LogicalDevice(f'/device:TPU:{k}', 'TPU') for k in (1, 0)
    ]
    found = self._Tpus('local', 2)
    self.assertEqual(found.devices, ('/device:TPU:0', '/device:TPU:1'))
    self.assertEqual(self._Order(), ['initialize', 'list'])
    self.assertEqual(cluster.Local('tpu', 2), found)

  def testHostsThatAreNotThere(self):
    self._calls.wait.return_value = ['TPU host 1 at h:1 (refuses connections)']
    with self.assertRaisesRegex(
      ValueError,
      rf'^--tpu={_NAME}: 1 of 2 hosts are not there after 7 s '
      r'\(--worker_wait\): TPU host 1 at h:1 \(refuses connections\)$',
    ):
      self._Tpus(_NAME, 1, wait_seconds=7.0)
    self.assertEqual(self._Order(), ['wait'])

  def testTooFewCores(self):
    with self.assertRaisesRegex(
      ValueError, rf'need 9 TPU cores, but --tpu={_NAME} has 8, on 2 hosts'
    ):
      self._Tpus(_NAME, 3, 3)

  def testNoSuchName(self):
    self._Enter(
      tf.distribute.cluster_resolver,
      'TPUClusterResolver',
      side_effect=OSError('unknown'),
    )
    with self.assertRaisesRegex(user_error.UserError, r'^--tpu=t: .*unknown'):
      self._Tpus('t', 1)

  @parameterized.parameters(
    (_NAME, 'at its hosts .*; they must be TPU hosts'),
    ('local', 'on this machine .*; run on a TPU host'),
  )
  def testNoTpuThere(self, name, message):
    self._calls.initialize.side_effect = tf.errors.NotFoundError(
      None, None, 'TPUs not found\nin many lines'
    )
    with self.assertRaisesRegex(
      ValueError,
      rf'^--tpu={name}: TensorFlow finds no TPU {message}',
    ) as caught:
      self._Tpus(name, 1)
    self.assertNotIn('\n', str(caught.exception))


class ServerWithoutTpuTest(absltest.TestCase):
  def testIsConnectedToAndRefused(self):
    (port,) = free_ports.FreePorts(1)
    server = tf.distribute.Server(
      {'worker': [f'127.0.0.1:{port}']}, job_name='worker', start=True
    )
    name = server.target
    lines = []
    with self.assertRaisesRegex(
      ValueError, rf'^--tpu={name}: TensorFlow finds no TPU at its hosts '
    ):
      cluster.Tpus(name, 1, show=lines.append)
    self.assertStartsWith(lines[1], f'connecting to --tpu={name} at 127.0.0.1')
    # It was reached: its processor computes.
    with tf.device('/job:worker/replica:0/task:0/device:CPU:0'):
      total = tf.constant(1.0) + 1.0
    self.assertEqual(float(total), 2.0)
    self.assertStartsWith(cluster.ClientDevice(), '/job:client/')


if __name__ == '__main__':
  absltest.main()
