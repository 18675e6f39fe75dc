"""Tests of amoebanet: the paper's sizes, and how the cells fit together."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe
from lingvo_gpipe.gpipe.planning import cost
from lingvo_gpipe.layers import norm
from tasks.image import amoebanet


def _Cells(**kwargs):
  settings = {
    'num_layers': 6,
    'num_filters': 16,
    'image_size': 224,
    'num_classes': 10,
  }
  return amoebanet.AmoebaNetCells(**{**settings, **kwargs})


def _Net(**kwargs):
  cells = _Cells(**kwargs)
  return gpipe.GPipe.Params().Set(name='net', cells=cells).Instantiate()


def _Costs(net, image_size, channels=3):
  """The cells' costs, and with them their output shapes."""
  batch = nested_map.NestedMap(
    inputs=tf.TensorSpec([2, image_size, image_size, channels]),
    labels=tf.TensorSpec([2], tf.int32),
    weights=tf.TensorSpec([2]),
  )
  return cost.CountCells(net.cells, batch.inputs, batch)


class ParameterCountTest(parameterized.TestCase):
  """Millions of trainable parameters; no memory is taken for them."""

  def _Check(self, expected, **kwargs):
    specs = tf.nest.flatten(_Net(**kwargs).VariableSpecs())
    count = sum(spec.size for spec in specs if spec.trainable)
    self.assertAlmostEqual(count / (1e6 * expected), 1.0, delta=0.001)

  @parameterized.parameters(
    # Table 1 of the GPipe paper: 82M, 318M, 542M, 1.05B, 1.8B.
    ('amoebanet_d', 18, 208, 81.14),
    ('amoebanet_d', 18, 416, 317.54),
    ('amoebanet_d', 18, 544, 540.20),
    ('amoebanet_d', 36, 544, 1053.3),
    ('amoebanet_d', 72, 512, 1842.6),
    # Table 2 and Table 3.
    ('amoebanet_d', 18, 256, 121.91),
    ('amoebanet_d', 18, 128, 31.56),
    # Section 4: 557M.
    ('amoebanet_b', 18, 512, 557.28),
  )
  def testWithoutAuxiliaryHead(self, genotype, layers, filters, expected):
    self._Check(
      expected,
      genotype=genotype,
      num_layers=layers,
      num_filters=filters,
      num_classes=1000,
    )

  @parameterized.parameters(
    ('amoebanet_d', 18, 208, 224, 81.79),
    ('amoebanet_d', 18, 416, 224, 318.28),
    ('amoebanet_d', 18, 544, 224, 540.99),
    ('amoebanet_d', 36, 544, 224, 1054.1),
    ('amoebanet_d', 72, 512, 224, 1843.4),
    ('amoebanet_b', 18, 512, 224, 558.05),
    ('amoebanet_b', 18, 512, 480, 559.07),
  )
  def testWithAuxiliaryHead(self, genotype, layers, filters, size, expected):
    self._Check(
      expected,
      genotype=genotype,
      num_layers=layers,
      num_filters=filters,
      image_size=size,
      num_classes=1001,
      aux_loss_weight=0.4,
    )


class AmoebaNetTest(tf.test.TestCase, parameterized.TestCase):
  def testOrderOfCells(self):
    names = [cell.name for cell in _Cells(aux_loss_weight=0.4)]
    self.assertEqual(
      names,
      [
        'stem',
        'stem_reduction_0',
        'stem_reduction_1',
        'normal_00',
        'normal_01',
        'reduction_0',
        'normal_02',
        'normal_03',
        'auxiliary_head',
        'reduction_1',
        'normal_04',
        'normal_05',
        'head',
      ],
    )
    small = [cell.name for cell in _Cells(small_images=True, num_layers=3)]
    self.assertEqual(
      small,
      [
        'stem',
        'normal_00',
        'reduction_0',
        'normal_01',
        'reduction_1',
        'normal_02',
        'head',
      ],
    )

  @parameterized.parameters(331, 64)
  def testImageSizes(self, image_size):
    costs = _Costs(_Net(image_size=image_size, num_layers=3), image_size)
    sizes = [c.output_spec[0].shape[1] for c in costs[:-1]]
    expected = [(image_size - 3) // 2 + 1]
    for halve in (1, 1, 0, 1, 0, 1, 0):
      expected.append((expected[-1] + halve) // (1 + halve))
    self.assertEqual(sizes, expected)
    filters = [c.output_spec[0].shape[-1] for c in costs[:-1]]
    self.assertEqual(filters, [32, 12, 24, 64, 96, 128, 192, 256])
    # A cell hands on what it received.
    for before, after in zip(costs[:-2], costs[1:-1], strict=True):
      self.assertEqual(after.output_spec[1].shape, before.output_spec[0].shape)

  def testSmallImages(self):
    net = _Net(
      image_size=8,
      small_images=True,
      input_channels=1,
      stem_filters=5,
      num_layers=3,
    )
    costs = _Costs(net, 8, channels=1)
    self.assertEqual(
      [tuple(c.output_spec[0].shape[1:]) for c in costs[:-1]],
      [
        (8, 8, 5),
        (8, 8, 64),
        (4, 4, 96),
        (4, 4, 128),
        (2, 2, 192),
        (2, 2, 256),
      ],
    )
    self.assertIsNone(costs[0].output_spec[1])

  def testAuxiliaryHeadFits(self):
    net = _Net(image_size=331, num_layers=3, aux_loss_weight=0.4)
    costs = _Costs(net, 331)
    place = [cell.params.name for cell in net.cells].index('auxiliary_head')
    self.assertEqual(
      costs[place].output_spec[0].shape, costs[place - 1].output_spec[0].shape
    )

  def testDropPathGrowsWithDepth(self):
    def _KeepProbs(**kwargs):
      cells = _Cells(drop_path_keep_prob=0.6, **kwargs)
      return [c.drop_path.keep_prob for c in cells if 'drop_path' in c]

    self.assertEqual(_KeepProbs(), [0.6] * 10)
    self.assertAllClose(
      _KeepProbs(drop_path_by_depth=True),
      [1.0 - 0.4 * (i + 1) / 10 for i in range(10)],
    )
    ramps = [
      c.drop_path.ramp_steps
      for c in _Cells(drop_path_ramp_steps=7)
      if 'drop_path' in c
    ]
    self.assertEqual(ramps, [7] * 10)

  def testBatchNormOfAllCells(self):
    net = _Net(
      aux_loss_weight=0.4,
      batch_norm=norm.BatchNorm.Params().Set(decay=0.5, epsilon=0.25),
    )
    settings = {
      (x.params.decay, x.params.epsilon)
      for x in net.Descendants()
      if isinstance(x, norm.BatchNorm)
    }
    self.assertEqual(settings, {(0.5, 0.25)})

  def testKernelsDecayAndNothingElse(self):
    for spec in tf.nest.flatten(_Net(aux_loss_weight=0.4).VariableSpecs()):
      kernel = len(spec.shape) > 1
      self.assertEqual('l2' in spec.collections, kernel, spec.path)

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, 'num_layers=2 must be 3 or more'):
      _Cells(num_layers=2)
    with self.assertRaisesRegex(
      ValueError, 'num_filters=15 must be 16 or more'
    ):
      _Cells(num_filters=15)
    with self.assertRaisesRegex(ValueError, 'num_filters=3 must be 4 or more'):
      _Cells(num_filters=3, small_images=True)
    with self.assertRaisesRegex(ValueError, "'amoebanet_a' is not known"):
      _Cells(genotype='amoebanet_a')
    with self.assertRaisesRegex(ValueError, 'set the weight of the auxiliary'):
      _Net(image_size=8, small_images=True, aux_loss_weight=0.4)


if __name__ == '__main__':
  tf.test.main()
