"""Two replicas of two partitions on worker processes: the same bits."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe import gpipe, test_cells
from lingvo_gpipe.workers import local_workers

_workers = None
_devices = {}


def setUpModule():
  global _workers
  _workers = local_workers.LocalWorkers(4)
  _workers.__enter__()
  _devices['workers'] = cluster.Connect(_workers.addresses).devices
  _devices['client'] = ['/job:client/replica:0/task:0/device:CPU:0'] * 4
  # It rewrites sums, differently in graphs that are placed differently.
  tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})


def tearDownModule():
  _workers.__exit__(None, None, None)


def _Train(devices):
  """Two steps of SGD: [loss and variables of each], variables' tasks."""
  batch = test_cells.Batch(dtype=tf.float32)
  net = gpipe.GPipe.Params().Set(
    name='net',
    cells=test_cells.Cells(keep_prob=0.7),
    num_partitions=2,
    num_replicas=2,
    num_micro_batches=3,
    dtype=tf.float32,
  )
  net = net.Instantiate()
  net.Plan(batch, list(devices))
  net.InstantiateVariables()
  variables = tf.nest.flatten(net.vars)

  @tf.function(autograph=False)
  def _Step(batch, step):
    result = net.ComputeGradients(batch, step)
    for var, grad in zip(variables, tf.nest.flatten(result.grads), strict=True):
      if grad is not None:
        with tf.device(var.device):
          var.assign_sub(0.1 * grad)
    net.ApplyStatistics(result.statistics)
    return result.loss

  results = []
  for t in range(2):
    results.append(_Step(batch, tf.constant(t, tf.int64)).numpy())
    results += [v.numpy() for v in variables]
  return results, {tf.DeviceSpec.from_string(v.device).task for v in variables}


class ReplicasWorkersTest(tf.test.TestCase):
  def testTheSameBitsAsOneProcess(self):
    on_workers, tasks = _Train(_devices['workers'])
    self.assertEqual(tasks, {0, 1, 2, 3})
    in_client, unused_tasks = _Train(_devices['client'])
    for a, b in zip(on_workers, in_client, strict=True):
      np.testing.assert_array_equal(a, b)
    # Training did something.
    self.assertNotEqual(on_workers[0], on_workers[len(on_workers) // 2])


if __name__ == '__main__':
  tf.test.main()
