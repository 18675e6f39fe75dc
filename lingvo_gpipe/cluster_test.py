"""Tests of cluster."""

from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe import device_names, gpipe, test_cells


def _Gpus(*places):
  """Device strings of pairs (worker, GPU)."""
  return tuple(
    f'/job:worker/replica:0/task:{task}/device:GPU:{index}'
    for task, index in places
  )


class WorkerGpusTest(parameterized.TestCase):
  """--worker_gpus: where partitions of replicas go, without a GPU."""

  def _Net(self, **kwargs):
    return (
      gpipe.GPipe.Params()
      .Set(
        name='net',
        cells=test_cells.Cells(),
        num_micro_batches=2,
        **kwargs,
      )
      .Instantiate()
    )

  @parameterized.parameters(
    # One replica goes on from worker to worker.
    (2, 2, 4, 1, [[(0, 0), (0, 1), (1, 0), (1, 1)]]),
    # A replica for each worker.
    (2, 2, 2, 2, [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]),
    # Two replicas on each, and each on parts of two.
    (2, 4, 2, 4, [[(w, g), (w, g + 1)] for w in (0, 1) for g in (0, 2)]),
    (2, 3, 2, 3, [[(0, 0), (0, 1)], [(0, 2), (1, 0)], [(1, 1), (1, 2)]]),
    (3, 1, 1, 3, [[(0, 0)], [(1, 0)], [(2, 0)]]),
  )
  def testPartitionsAndReplicas(self, num_workers, gpus, k, r, expected):
    found = cluster.Workers(num_workers, gpus)
    self.assertEqual(found.kind, 'gpu')
    net = self._Net(num_partitions=k, num_replicas=r)
    plan = net.Plan(test_cells.Batch(), devices=list(found.devices))
    self.assertEqual(
      [tuple(devices) for devices in plan.replica_devices],
      [_Gpus(*places) for places in expected],
    )
    for replica, places in enumerate(expected):
      self.assertEqual(
        tuple(stage.device for stage in net.Stages(replica)), _Gpus(*places)
      )

  def testInterleavedPartitionsTakeTurns(self):
    net = self._Net(
      num_partitions=2, num_replicas=2, schedule='interleaved', num_chunks=2
    )
    plan = net.Plan(
      test_cells.Batch(), devices=list(cluster.Workers(2, 2).devices)
    )
    self.assertEqual(
      [tuple(devices) for devices in plan.replica_devices],
      [2 * _Gpus((w, 0), (w, 1)) for w in (0, 1)],
    )

  def testAWorkerWithFewerGpus(self):
    there = [*_Gpus((0, 0), (0, 1), (1, 0)), device_names.WorkerDevices(2)[1]]
    listed = [tf.config.LogicalDevice(name, 'GPU') for name in there]
    self.enter_context(
      mock.patch.object(tf.config, 'list_logical_devices', return_value=listed)
    )
    connect = self.enter_context(
      mock.patch.object(tf.config, 'experimental_connect_to_cluster')
    )
    with self.assertRaisesRegex(
      ValueError,
      r'^worker 1 at 127.0.0.1:2 has no .*/task:1/device:GPU:1, only '
      r'.*/task:1/device:CPU:0, .*/task:1/device:GPU:0; .* --worker_gpus',
    ):
      cluster.Connect(['127.0.0.1:1', '127.0.0.1:2'], 2)
    connect.assert_called_once()


class ClusterTest(absltest.TestCase):
  def testCpuHasADeviceForEachPartition(self):
    local = cluster.Local('cpu', 3)
    self.assertEqual(local.kind, 'cpu')
    self.assertLen(set(local.devices), 3)
    for device in local.devices:
      with tf.device(device):
        self.assertEndsWith(tf.constant(1.0).device, device)

  def testMachineWithoutAccelerators(self):
    if tf.config.list_physical_devices('GPU'):
      self.skipTest('this machine has a GPU')
    with self.assertRaisesRegex(ValueError, 'no GPU .* --run_locally=cpu$'):
      cluster.Local('gpu', 1)
    with self.assertRaisesRegex(ValueError, 'no TPU .* --run_locally=cpu$'):
      cluster.Local('tpu', 1)

  def testWorkersNeedNoConnection(self):
    workers = cluster.Workers(2)
    self.assertEqual(workers.kind, 'cpu')
    self.assertEqual(
      workers.devices[1], '/job:worker/replica:0/task:1/device:CPU:0'
    )

  def testReturnToClientWithoutWorkers(self):
    def _Step(x):
      return {'y': x + 1.0}

    step = cluster.ReturnToClient(_Step)
    x = tf.constant(1.0)
    self.assertEqual(float(step(x)['y']), 2.0)
    with tf.Graph().as_default():  # Adds nothing to the graph.
      y = step(tf.constant(1.0))['y']
      self.assertEqual(y.op.type, 'AddV2')

  def testPlannedNeedsNoDevices(self):
    planned = cluster.Planned('gpu', 128)
    self.assertLen(planned.devices, 128)
    self.assertEqual(planned.devices[127], '/device:GPU:127')


if __name__ == '__main__':
  absltest.main()
