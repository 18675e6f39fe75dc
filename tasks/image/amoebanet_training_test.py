"""Training a small AmoebaNet with all its parts is the same for every K."""

import tensorflow as tf

from lingvo_gpipe import base_task, nested_map
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.train import optimizers
from tasks.image import amoebanet

_M, _STEPS, _SIZE = 2, 3, 12


def setUpModule():
  placement.ConfigureLogicalCpus(4)


def _Batch(step):
  draw = tf.random.stateless_uniform
  return nested_map.NestedMap(
    inputs=draw([4, _SIZE, _SIZE, 3], (1, step), dtype=tf.float64),
    labels=draw([4], (2, step), 0, 10, tf.int32),
    weights=tf.ones([4], tf.float64),
  )


def _Train(num_partitions):
  """{path: value} of all variables after some steps, and the losses."""
  p = base_task.BaseTask.Params().Set(name='task', dtype=tf.float64)
  p.net.Set(
    cells=amoebanet.AmoebaNetCells(
      genotype='amoebanet_b',
      num_layers=3,
      num_filters=4,
      image_size=_SIZE,
      num_classes=10,
      small_images=True,
      stem_filters=4,
      keep_prob=0.5,
      label_smoothing=0.1,
      aux_loss_weight=0.4,
      drop_path_keep_prob=0.6,
      drop_path_by_depth=True,
      drop_path_ramp_steps=2,
    ),
    num_partitions=num_partitions,
    num_micro_batches=_M,
  )
  p.train.ema.decay = 0.9
  p.train.learner.Set(
    optimizer=optimizers.RMSProp.Params(),
    learning_rate=0.1,
    l2_regularizer_weight=1e-3,
    clip_gradient_norm_to_value=1.0,
  )
  task = p.Instantiate()
  task.Plan(_Batch(0))
  task.InstantiateVariables()
  step = tf.function(task.TrainStep, autograph=False)
  losses = []
  for i in range(_STEPS):
    outputs = step(_Batch(i), tf.constant(i, tf.int64))
    losses.append(outputs.loss)
    aux_losses = outputs.aux_losses
  return task.variables_for_checkpoint, losses, aux_losses


class AmoebaNetTrainingTest(tf.test.TestCase):
  def testAnyNumberOfPartitions(self):
    expected, losses, aux_losses = _Train(1)
    self.assertLen(aux_losses, 1)
    self.assertLen(set(map(float, losses)), _STEPS)
    averages = [path for path in expected if path.endswith('/ema')]
    self.assertNotEmpty(averages)
    for num_partitions in (2, 4):
      actual, others, _ = _Train(num_partitions)
      self.assertAllClose(others, losses, rtol=1e-10)
      self.assertEqual(actual.keys(), expected.keys())
      for path, value in expected.items():
        self.assertAllClose(actual[path], value, rtol=1e-10, atol=1e-12)
    moved = [
      path
      for path in averages
      if not _Equal(expected[path], expected[path.removesuffix('/ema')])
    ]
    self.assertGreater(len(moved), len(averages) // 2)


def _Equal(a, b):
  return bool(tf.reduce_all(tf.equal(a, b)))


if __name__ == '__main__':
  tf.test.main()
