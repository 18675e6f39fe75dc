"""Tests of cluster."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import cluster


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
