"""A small AmoebaNet through GPipe equals the plain one."""

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, placement, plain_model
from tasks.image import amoebanet

_M = 2


def setUpModule():
  placement.ConfigureLogicalCpus(3)


def _Batch():
  draw = tf.random.stateless_uniform
  return nested_map.NestedMap(
    inputs=draw([8, 8, 8, 1], (1, 2), dtype=tf.float64),
    labels=draw([8], (3, 4), 0, 10, tf.int32),
    weights=tf.constant([1.0] * 7 + [0.0], tf.float64),
  )


def _Net(num_partitions, batch):
  cells = amoebanet.AmoebaNetCells(
    num_layers=3,
    num_filters=4,
    image_size=8,
    num_classes=10,
    small_images=True,
    input_channels=1,
    stem_filters=4,
    keep_prob=0.5,
    label_smoothing=0.1,
    drop_path_keep_prob=0.7,
  )
  net = gpipe.GPipe.Params().Set(
    name='net',
    cells=cells,
    num_partitions=num_partitions,
    num_micro_batches=_M,
    dtype=tf.float64,
  )
  net = net.Instantiate()
  net.Plan(batch)
  net.InstantiateVariables()
  return net


class AmoebaNetPipelineTest(tf.test.TestCase):
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
    # Batch norm's moving moments after the update, and something has moved.
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
    self.assertGreater(moved, 50)


if __name__ == '__main__':
  tf.test.main()
