"""Tests of resnet_block."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context
from lingvo_gpipe.layers import gradient_check
from tasks.image import resnet_block


def _Layer(input_dim=8, **kwargs):
  layer = (
    resnet_block.BottleneckBlock.Params()
    .Set(
      name='block',
      dtype=tf.float64,
      input_dim=input_dim,
      num_filters=2,
      **kwargs,
    )
    .Instantiate()
  )
  layer.InstantiateVariables()
  return layer


class BottleneckBlockTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    (8, 1, 6, False), (8, 2, 6, True), (8, 2, 5, True), (3, 1, 5, True)
  )
  def testShapes(self, input_dim, stride, size, projects):
    layer = _Layer(input_dim, stride=stride)
    outputs = layer(gradient_check.Draw([2, size, size, input_dim], 1))
    new = -(-size // stride)
    self.assertEqual(outputs.shape, [2, new, new, 8])
    self.assertEqual('project' in layer.theta, projects)

  def testStrideOfThe3x3(self):
    layer = _Layer(stride=2)
    strides = {
      name: child.conv.params.filter_stride
      for name, child in layer.children.items()
    }
    self.assertEqual(
      strides,
      {'reduce': (1, 1), 'conv': (2, 2), 'expand': (1, 1), 'project': (2, 2)},
    )

  def testZeroStart(self):
    x = gradient_check.Draw([2, 4, 4, 8], 1)
    self.assertNotAllClose(_Layer()(x), tf.nn.relu(x))
    layer = _Layer(zero_start=True)
    self.assertAllEqual(layer(x), tf.nn.relu(x))
    with fprop_context.FPropContext(do_eval=False):
      self.assertAllEqual(layer(x), tf.nn.relu(x))
    # Its gamma learns, and through it all else.
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(layer(x) ** 2)
    gradient = tape.gradient(loss, layer.vars.expand.norm.gamma)
    self.assertAllGreater(tf.abs(gradient), 0.0)

  def testZeroStartKeepsDecayAndEpsilon(self):
    settings = resnet_block.DefaultNorm().Set(decay=0.5, epsilon=0.25)
    layer = _Layer(zero_start=True, norm=settings)
    for name, child in layer.children.items():
      p = child.norm.params
      self.assertEqual((p.decay, p.epsilon), (0.5, 0.25), name)

  @parameterized.parameters(1, 2)
  def testGradients(self, stride):
    layer = _Layer(stride=stride)
    x = gradient_check.Draw([3, 4, 4, 8], 1)
    gradient_check.AssertGradients(self, layer, x)

  def testErrors(self):
    for settings in ({'stride': 3}, {'stride': 0}):
      with self.assertRaisesRegex(ValueError, 'block: num_filters=2 must be'):
        _Layer(**settings)


class PaddedTest(tf.test.TestCase):
  def testPadded(self):
    padded = resnet_block.Padded(tf.ones([1, 2, 3, 4]), 7)
    self.assertEqual(padded.shape, [1, 8, 9, 4])
    self.assertAllEqual(padded[:, 3:5, 3:6], tf.ones([1, 2, 3, 4]))
    self.assertAllEqual(tf.reduce_sum(padded), 24.0)


if __name__ == '__main__':
  tf.test.main()
