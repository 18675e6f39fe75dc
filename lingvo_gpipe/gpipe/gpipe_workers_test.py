"""GPipe on worker processes: the same numbers, and errors that name cells."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, cluster
from lingvo_gpipe.gpipe import gpipe, test_cells
from lingvo_gpipe.workers import local_workers

_workers = None
_devices = {}


def setUpModule():
  global _workers
  _workers = local_workers.LocalWorkers(2)
  _workers.__enter__()
  _devices['workers'] = cluster.Connect(_workers.addresses).devices
  _devices['client'] = ['/job:client/replica:0/task:0/device:CPU:0'] * 2


def tearDownModule():
  _workers.__exit__(None, None, None)


class _Broken(base_layer.BaseLayer):
  """Divides by zero, or asserts what is not so, when it is run."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('asserts', False, 'Assert.')
    return p

  def FProp(self, theta, inputs):
    if not self.params.asserts:
      return tf.debugging.check_numerics(inputs / 0.0, 'broken on purpose')
    low = tf.constant(-1e9, inputs.dtype)
    with tf.control_dependencies(
      [tf.debugging.assert_less(inputs, low, message='broken on purpose')]
    ):
      return tf.identity(inputs)


def _Net(devices, cells, dtype, **kwargs):
  net = gpipe.GPipe.Params().Set(
    name='net',
    cells=cells,
    num_partitions=2,
    num_micro_batches=4,
    dtype=dtype,
    **kwargs,
  )
  net = net.Instantiate()
  net.Plan(test_cells.Batch(dtype=dtype), list(devices))
  net.InstantiateVariables()
  return net


class GPipeWorkersTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(
    ('1f1b', 'partition'), ('gpipe', 'cell'), ('eager_1f1b', 'none')
  )
  def testTheSameBitsAsOneProcess(self, schedule, rematerialize):
    batch = test_cells.Batch(dtype=tf.float32)
    results = {}
    for where, devices in _devices.items():
      net = _Net(
        devices,
        test_cells.Cells(keep_prob=0.7),
        tf.float32,
        schedule=schedule,
        rematerialize=rematerialize,
      )
      step = tf.function(net.ComputeGradients, autograph=False)
      result = step(batch, tf.constant(3, tf.int64))
      grads = [g for g in tf.nest.flatten(result.grads) if g is not None]
      if where == 'workers':
        self.assertIn('task:0', grads[0].device)
        self.assertIn('task:1', grads[-1].device)
      results[where] = [x.numpy() for x in [result.loss, *grads]]
    for a, b in zip(*results.values(), strict=True):
      np.testing.assert_array_equal(a, b)

  @parameterized.product(place=(1, 4), asserts=(False, True))
  def testAFailingCellEndsTheStepAndIsNamed(self, place, asserts):
    cells = test_cells.Cells()
    broken = _Broken.Params().Set(name='broken', asserts=asserts)
    # Fork, carry and join belong together.
    cells = [*cells[:2], cells[0].Copy().Set(name='linear_2'), cells[-1]]
    cells.insert({1: 1, 4: 3}[place], broken)
    net = _Net(_devices['workers'], cells, tf.float64, splits=[2, 3])
    step = tf.function(net.ComputeGradients, autograph=False)
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError, 'broken on purpose'
    ) as caught:
      with net.NamedFailures():
        float(step(test_cells.Batch(), tf.constant(0, tf.int64)).loss)
    number, partition = (1, 0) if place == 1 else (3, 1)
    self.assertIn(
      f'in cell {number} (net/broken, _Broken) of partition {partition} on '
      f'{_devices["workers"][partition]}',
      caught.exception.__notes__[0],
    )


if __name__ == '__main__':
  tf.test.main()
