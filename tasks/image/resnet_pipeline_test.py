"""A small ResNet through GPipe equals the plain one."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, placement, plain_model
from tasks.image import resnet

_M = 2


def setUpModule():
  placement.ConfigureLogicalCpus(3)


def _Batch():
  draw = tf.random.stateless_uniform
  return nested_map.NestedMap(
    inputs=draw([8, 16, 16, 3], (1, 2), dtype=tf.float64),
    labels=draw([8], (3, 4), 0, 10, tf.int32),
    weights=tf.constant([1.0] * 7 + [0.0], tf.float64),
  )


def _Net(num_partitions, batch):
  cells = resnet.ResNetCells(
    num_classes=10,
    num_blocks=(1, 2),
    width=1 / 16,
    zero_start=False,
    keep_prob=0.5,
    label_smoothing=0.1,
  )
  net = (
    gpipe.GPipe.Params()
    .Set(
      name='net',
      cells=cells,
      num_partitions=num_partitions,
      num_micro_batches=_M,
      dtype=tf.float64,
    )
    .Instantiate()
  )
  net.Plan(batch)
  net.InstantiateVariables()
  return net


class ResNetPipelineTest(tf.test.TestCase):
  def testEqualsThePlainModel(self):
    batch, step = _Batch(), 5
    plain, piped = _Net(1, batch), _Net(3, batch)
    expected = plain_model.ComputeGradients(plain.cells, batch, _M, step)
    actual = tf.function(piped.ComputeGradients, autograph=False)(
      batch, tf.constant(step, tf.int64)
    )

    def _Close(a, e):
      self.assertAllClose(a, e, rtol=1e-10, atol=1e-10)

    _Close(actual.loss, expected.loss)
    tf.nest.map_structure(_Close, actual.metrics, expected.metrics)
    grads = [g for g in tf.nest.flatten(actual.grads) if g is not None]
    for gradient, other in zip(grads, expected.grads, strict=True):
      _Close(gradient, other)
      self.assertGreater(tf.reduce_max(tf.abs(other)), 0.0)
    # Batch norm's moving moments after the update, and all have moved.
    start = [v.numpy() for v in tf.nest.flatten(piped.vars)]
    plain.ApplyStatistics(expected.statistics)
    piped.ApplyStatistics(actual.statistics)
    moved = 0
    for a, e, s in zip(
      tf.nest.flatten(piped.vars),
      tf.nest.flatten(plain.vars),
      start,
      strict=True,
    ):
      _Close(a, e)
      moved += (a.numpy() != s).any()
    # A mean and a variance each: the stem's, 3 of each block, 2 projections'.
    self.assertEqual(moved, 2 * (1 + 3 * 3 + 2))


if __name__ == '__main__':
  tf.test.main()
