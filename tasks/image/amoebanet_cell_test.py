"""Tests of amoebanet_cell."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context
from lingvo_gpipe.layers import gradient_check, norm
from tasks.image import amoebanet_cell, amoebanet_ops, genotypes


def _Params(**kwargs):
  return amoebanet_cell.AmoebaNetCell.Params().Set(
    name='cell',
    dtype=tf.float64,
    input_dim=6,
    skip_dim=5,
    num_filters=4,
    **kwargs,
  )


def _Layer(params):
  layer = params.Instantiate()
  layer.InstantiateVariables()
  return layer


def _Inputs(size=6, skip_size=None, skip_dim=5):
  skip_size = skip_size or size
  return (
    gradient_check.Draw([2, size, size, 6], 1),
    gradient_check.Draw([2, skip_size, skip_size, skip_dim], 2),
  )


def _Reference(layer, theta, inputs, skip):
  """The cell computed from its genotype by its children's operations."""
  cell, p = layer._genotype, layer.params
  h0 = layer.match_inputs.FProp(theta.match_inputs, inputs)
  h1 = layer.match_skip.FProp(theta.match_skip, skip)
  states = [h0, h1]
  for i, block in enumerate(cell.blocks):
    total = 0.0
    for side, (state, operation) in zip(('left', 'right'), block, strict=True):
      stride = 2 if p.reduction and state < 2 else 1
      name = f'block_{i}_{side}'
      if operation == 'none' and stride == 1:
        total += states[state]
      else:
        child = layer.children[name]
        total += child.FProp(theta[name], states[state])
    states.append(total)
  return tf.concat([states[i] for i in cell.concat], -1)


class AmoebaNetCellTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    genotype=sorted(genotypes.GENOTYPES),
    reduction=[False, True],
    skip_stride=[1, 2],
  )
  def testFProp(self, genotype, reduction, skip_stride):
    layer = _Layer(
      _Params(genotype=genotype, reduction=reduction, skip_stride=skip_stride)
    )
    inputs, skip = _Inputs(skip_size=6 * skip_stride)
    theta = gradient_check.RandomTheta(layer)
    outputs, new_skip = layer.FProp(theta, (inputs, skip))
    self.assertIs(new_skip, inputs)
    size = 3 if reduction else 6
    dim = amoebanet_cell.OutputDim(genotype, reduction, 4)
    self.assertEqual(outputs.shape, [2, size, size, dim])
    self.assertAllClose(outputs, _Reference(layer, theta, inputs, skip))

  @parameterized.parameters(
    ('amoebanet_d', False, 16),
    ('amoebanet_d', True, 12),
    ('amoebanet_b', False, 16),
    ('amoebanet_b', True, 8),
  )
  def testOutputDim(self, genotype, reduction, expected):
    self.assertEqual(amoebanet_cell.OutputDim(genotype, reduction, 4), expected)

  @parameterized.product(
    genotype=sorted(genotypes.GENOTYPES), reduction=[False, True]
  )
  def testGradients(self, genotype, reduction):
    layer = _Layer(
      _Params(genotype=genotype, reduction=reduction, skip_stride=2)
    )
    inputs = _Inputs(size=4, skip_size=8)
    gradient_check.AssertGradients(self, layer, inputs, rtol=1e-5)

  def testSkipMatching(self):
    def _Match(**kwargs):
      return _Params(**kwargs).Instantiate().children.get('match_skip')

    self.assertIsInstance(
      _Match(skip_stride=2), amoebanet_ops.FactorizedReduction
    )
    self.assertEqual(_Match().params.conv.filter_shape, (1, 1, 5, 4))
    same = _Params().Set(skip_dim=4).Instantiate()
    self.assertNotIn('match_skip', same.children)

  @parameterized.parameters(False, True)
  def testMissingSkip(self, reduction):
    layer = _Layer(_Params(reduction=reduction).Set(skip_dim=None))
    self.assertNotIn('match_skip', layer.children)
    inputs, unused_skip = _Inputs()
    outputs, new_skip = layer((inputs, None))
    self.assertIs(new_skip, inputs)
    self.assertEqual(outputs.shape[-1], 12 if reduction else 16)
    # Operations on h1 read the inputs as they are.
    name = 'block_1_right' if reduction else 'block_0_left'
    first = next(
      x for x in layer.children[name].Descendants() if 'w' in x.VariableSpecs()
    )
    self.assertEqual(first.params.filter_shape[2], 6)
    gradient_check.AssertGradients(self, layer, (inputs, None), rtol=1e-5)

  def testOddSizes(self):
    layer = _Layer(_Params(reduction=True, skip_stride=2))
    outputs, unused_skip = layer(_Inputs(size=5, skip_size=9))
    self.assertEqual(outputs.shape, [2, 3, 3, 12])

  def testDropPath(self):
    params = _Params()
    params.drop_path.keep_prob = 0.5
    layer = _Layer(params)
    dropped = {name for name in layer.children if name.endswith('_drop')}
    branches = {
      f'block_{i}_{side}_drop'
      for i, block in enumerate(genotypes.AMOEBANET_D.normal.blocks)
      for side, (unused, op) in zip(('left', 'right'), block, strict=True)
      if op != genotypes.NONE
    }
    self.assertEqual(dropped, branches)

    inputs = _Inputs()

    def _Train(micro_batch):
      with fprop_context.FPropContext(
        do_eval=False, global_step=7, micro_batch=micro_batch
      ):
        return layer(inputs)[0]

    self.assertAllEqual(_Train(0), _Train(0))
    self.assertNotAllClose(_Train(0), _Train(1))
    plain = _Params().Instantiate()
    without = plain.FProp(layer.theta, inputs)[0]
    self.assertAllClose(layer(inputs)[0], without)

  def testBatchNormSettings(self):
    layer = _Params(norm=norm.BatchNorm.Params().Set(decay=0.5)).Instantiate()
    norms = [x for x in layer.Descendants() if isinstance(x, norm.BatchNorm)]
    # Two matches, three 1x1, two bottlenecks of four.
    self.assertLen(norms, 13)
    self.assertEqual({x.params.decay for x in norms}, {0.5})

  def testTextRoundTrip(self):
    params = _Params(reduction=True)
    other = amoebanet_cell.AmoebaNetCell.Params().FromText(params.ToText())
    self.assertEqual(other, params)

  def testErrors(self):
    with self.assertRaisesRegex(
      ValueError, "genotype 'amoebanet' is not known"
    ):
      _Params(genotype='amoebanet').Instantiate()
    with self.assertRaisesRegex(ValueError, 'skip_stride=3 is not 1 or 2'):
      _Params(skip_stride=3).Instantiate()
    with self.assertRaisesRegex(ValueError, 'num_filters=2 must be 4 or more'):
      _Params().Set(num_filters=2).Instantiate()
    with self.assertRaisesRegex(ValueError, 'skip_dim=5, but the skip is None'):
      _Layer(_Params())((_Inputs()[0], None))


if __name__ == '__main__':
  tf.test.main()
