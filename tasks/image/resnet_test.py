"""Tests of resnet: parameters, and the same network built with Keras."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.gpipe import gpipe
from lingvo_gpipe.gpipe.planning import cost
from lingvo_gpipe.layers import gradient_check, norm
from tasks.image import resnet, resnet_block

_EPSILON = 1e-5


def _Net(**kwargs):
  cells = resnet.ResNetCells(**{'num_classes': 10, **kwargs})
  net = gpipe.GPipe.Params().Set(name='net', cells=cells, dtype=tf.float64)
  return net.Instantiate()


class ParameterCountTest(parameterized.TestCase):
  @parameterized.parameters(
    (50, 25_557_032), (101, 44_549_160), (152, 60_192_808)
  )
  def testImageNet(self, depth, expected):
    net = _Net(depth=depth, num_classes=1000)
    specs = tf.nest.flatten(net.VariableSpecs())
    self.assertEqual(sum(s.size for s in specs if s.trainable), expected)

  @parameterized.parameters(50, 101, 152)
  def testLayersWithWeights(self, depth):
    specs = tf.nest.flatten(_Net(depth=depth).VariableSpecs())
    kernels = [s for s in specs if len(s.shape) > 1 and 'project' not in s.path]
    self.assertLen(kernels, depth)


def _ConvNorm(x, theta, size, stride, training):
  """Convolution and batch norm of Keras with the weights of `theta`."""
  layers = tf.keras.layers
  conv = layers.Conv2D(
    theta.conv.w.shape[-1], size, stride, use_bias=False, dtype='float64'
  )
  bn = layers.BatchNormalization(epsilon=_EPSILON, dtype='float64')
  x = layers.ZeroPadding2D(size // 2, dtype='float64')(x)
  conv.build(x.shape)
  conv.set_weights([theta.conv.w])
  bn.build([None, None, None, theta.conv.w.shape[-1]])
  t = theta.norm
  bn.set_weights([t.gamma, t.beta, t.moving_mean, t.moving_variance])
  return bn(conv(x), training=training)


def _Keras(thetas, x, training, small_images):
  """ResNet v1.5 up to the pooled features; thetas of the cells but the head."""
  stem, *blocks = thetas
  if small_images:
    x = tf.nn.relu(_ConvNorm(x, stem.conv, 3, 1, training))
  else:
    x = tf.nn.relu(_ConvNorm(x, stem.conv, 7, 2, training))
    x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=-1e30)
    x = tf.keras.layers.MaxPooling2D(3, 2, dtype='float64')(x)
  filters = None
  for theta in blocks:
    before, filters = filters, theta.reduce.conv.w.shape[-1]
    stride = 1 if before in (None, filters) else 2
    shortcut = x
    if 'project' in theta:
      shortcut = _ConvNorm(x, theta.project, 1, stride, training)
    x = tf.nn.relu(_ConvNorm(x, theta.reduce, 1, 1, training))
    x = tf.nn.relu(_ConvNorm(x, theta.conv, 3, stride, training))
    x = _ConvNorm(x, theta.expand, 1, 1, training)
    x = tf.nn.relu(x + shortcut)
  return tf.keras.layers.GlobalAveragePooling2D(dtype='float64')(x)


class ResNetTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(
    (False, 32, False), (False, 33, True), (True, 9, False), (True, 8, True)
  )
  def testEqualsKeras(self, small_images, image_size, training):
    net = _Net(num_blocks=(2, 1), width=1 / 16, small_images=small_images)
    for cell in net.cells:
      cell.InstantiateVariables()
    thetas = [
      tf.nest.pack_sequence_as(
        cell.theta,
        [
          0.6 + tf.random.stateless_uniform(v.shape, (i, 5), dtype=tf.float64)
          if len(v.shape) == 1
          else v
          for i, v in enumerate(tf.nest.flatten(cell.theta))
        ],
      )
      for cell in net.cells
    ]
    images = gradient_check.Draw([2, image_size, image_size, 3], 1)
    batch = nested_map.NestedMap(
      labels=tf.constant([3, 8]), weights=tf.ones([2], tf.float64)
    )
    with fprop_context.FPropContext(do_eval=not training):
      x = images
      for cell, theta in zip(net.cells[:-1], thetas[:-1], strict=True):
        x = cell.FProp(theta, x)
      outputs = net.cells[-1].FProp(thetas[-1], x, batch)
    features = _Keras(thetas[:-1], images, training, small_images)
    self.assertAllClose(
      tf.reduce_mean(x, [1, 2]), features, rtol=1e-10, atol=1e-10
    )
    head = tf.keras.layers.Dense(10, dtype='float64')
    head.build(features.shape)
    head.set_weights([thetas[-1].dense.w, thetas[-1].dense.b])
    loss = tf.keras.losses.sparse_categorical_crossentropy(
      batch.labels, head(features), from_logits=True
    )
    self.assertAllClose(outputs.loss.total, tf.reduce_sum(loss), rtol=1e-10)
    if not training:
      self.assertAllClose(outputs.logits, head(features), rtol=1e-10)

  def testOrderAndSizesOfCells(self):
    net = _Net(num_blocks=(2, 1, 1))
    self.assertEqual(
      [cell.params.name for cell in net.cells],
      [
        'stem',
        'group_0_block_00',
        'group_0_block_01',
        'group_1_block_00',
        'group_2_block_00',
        'head',
      ],
    )
    batch = nested_map.NestedMap(
      inputs=tf.TensorSpec([2, 224, 224, 3], tf.float64),
      labels=tf.TensorSpec([2], tf.int32),
      weights=tf.TensorSpec([2], tf.float64),
    )
    costs = cost.CountCells(net.cells, batch.inputs, batch)
    self.assertEqual(
      [tuple(c.output_spec.shape[1:]) for c in costs[:-1]],
      [
        (56, 56, 64),
        (56, 56, 256),
        (56, 56, 256),
        (28, 28, 512),
        (14, 14, 1024),
      ],
    )

  def testBatchNormOfAllCells(self):
    net = _Net(
      num_blocks=(1, 1),
      batch_norm=norm.BatchNorm.Params().Set(decay=0.5, epsilon=0.25),
    )
    settings = [
      (x.params.decay, x.params.epsilon)
      for x in net.Descendants()
      if isinstance(x, norm.BatchNorm)
    ]
    self.assertEqual(settings, [(0.5, 0.25)] * 9)

  @parameterized.parameters(True, False)
  def testZeroStart(self, zero_start):
    net = _Net(num_blocks=(1, 2), zero_start=zero_start)
    zeros = [
      s.path
      for s in tf.nest.flatten(net.VariableSpecs())
      if s.path.endswith('gamma') and s.init.scale == 0.0
    ]
    self.assertLen(zeros, 3 if zero_start else 0)
    for path in zeros:
      self.assertIn('/expand/', path)

  def testHead(self):
    head = resnet.ResNetCells(
      num_classes=7, keep_prob=0.5, label_smoothing=0.1, mixup=True
    )[-1]
    self.assertEqual(
      (head.num_classes, head.keep_prob, head.label_smoothing, head.mixup),
      (7, 0.5, 0.1, True),
    )
    self.assertEqual(head.input_dim, 2048)

  def testKernelsDecayAndNothingElse(self):
    for spec in tf.nest.flatten(_Net().VariableSpecs()):
      kernel = len(spec.shape) > 1
      self.assertEqual('l2' in spec.collections, kernel, spec.path)

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, 'depth=34 is none of 50, 101, 152'):
      _Net(depth=34)
    with self.assertRaisesRegex(ValueError, r'num_blocks=\(1, 0\) must be'):
      _Net(num_blocks=(1, 0))
    with self.assertRaisesRegex(ValueError, 'width=0.001 leaves no filters'):
      _Net(width=0.001)

  def testDefaultNorm(self):
    self.assertEqual(resnet_block.DefaultNorm().epsilon, _EPSILON)


if __name__ == '__main__':
  tf.test.main()
