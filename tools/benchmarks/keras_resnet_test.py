"""Tests of keras_resnet, and of image_training, which compares it with ours."""

import tensorflow as tf
from absl import flags
from absl.testing import absltest, flagsaver

from lingvo_gpipe import fprop_context, nested_map, user_error
from lingvo_gpipe.gpipe import gpipe
from lingvo_gpipe.layers import norm
from tasks.image import resnet
from tools.benchmarks import image_training, keras_resnet


def setUpModule():
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()


class KerasResNetTest(tf.test.TestCase):
  def testLogitsAreOurs(self):
    cells = resnet.ResNetCells(
      num_blocks=(1, 2),
      num_classes=10,
      batch_norm=norm.BatchNorm.Params().Set(epsilon=1e-5),
    )
    net = gpipe.GPipe.Params().Set(name='net', cells=cells).Instantiate()
    for cell in net.cells:
      cell.InstantiateVariables()
    model = keras_resnet.Model(num_blocks=(1, 2), image_size=33, num_classes=10)
    keras_resnet.CopyWeights(net.cells, model)
    x = images = tf.random.stateless_normal([3, 33, 33, 3], (1, 2))
    batch = nested_map.NestedMap(
      labels=tf.constant([1, 2, 3]), weights=tf.ones([3])
    )
    with fprop_context.FPropContext(do_eval=True):
      for cell in net.cells[:-1]:
        x = cell(x)
      logits = net.cells[-1](x, batch).logits
    self.assertAllClose(model(images, training=False), logits, atol=1e-5)
    self.assertGreater(float(tf.math.reduce_std(logits)), 1e-3)


class ImageTrainingTest(absltest.TestCase):
  def testLossesMustAgree(self):
    def _Subject(name, num_micro_batches=1):
      return image_training.Subject(name, num_micro_batches, lambda: 0.0)

    losses = {_Subject('a'): 2.0, _Subject('b'): 2.0001, _Subject('c', 4): 9.0}
    image_training.CheckLosses(losses)
    losses[_Subject('d')] = 2.1
    with self.assertRaisesRegex(RuntimeError, "differ: .*'d': 2.1"):
      image_training.CheckLosses(losses)

  def testIndivisibleBatch(self):
    with flagsaver.flagsaver(batch=9, micro_batches=4):
      with self.assertRaisesRegex(
        user_error.UserError, '--batch=9 is not divisible'
      ):
        image_training.Main()


if __name__ == '__main__':
  tf.test.main()
