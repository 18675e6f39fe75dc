"""Tests of base_layer."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer

WeightParams = base_layer.WeightParams


class _Linear(base_layer.BaseLayer):
  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('dim', 3, 'Width.')
    return p

  def __init__(self, params):
    super().__init__(params)
    dim = self.params.dim
    self.CreateVariable('w', WeightParams((dim, dim), collections=('l2',)))
    self.CreateVariable(
      'steps',
      WeightParams((), base_layer.WeightInit.Constant(0.0), tf.float32),
      trainable=False,
    )

  def FProp(self, theta, inputs):
    return inputs @ theta.w


class _Tower(base_layer.BaseLayer):
  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('layers', [], 'Params of the layers.')
    p.Define('last', _Linear.Params(), 'Params of the last one.')
    return p

  def __init__(self, params):
    super().__init__(params)
    self.CreateChildren('layers', list(self.params.layers))
    self.CreateChild('last', self.params.last)

  def FProp(self, theta, inputs):
    for layer, layer_theta in zip(self.layers, theta.layers, strict=True):
      inputs = layer.FProp(layer_theta, inputs)
    return self.last.FProp(theta.last, inputs)


def _TowerParams(**kwargs):
  layers = [_Linear.Params(), _Linear.Params().Set(name='named')]
  return _Tower.Params().Set(name='tower', layers=layers, **kwargs)


class BaseLayerTest(parameterized.TestCase, tf.test.TestCase):
  def testPathsAreThoseOfTheTree(self):
    tower = _TowerParams().Instantiate()
    specs = tf.nest.flatten(tower.VariableSpecs())
    self.assertCountEqual(
      [spec.path for spec in specs],
      [
        'tower/layers_000/w',
        'tower/layers_000/steps',
        'tower/named/w',
        'tower/named/steps',
        'tower/last/w',
        'tower/last/steps',
      ],
    )
    self.assertEqual(
      [layer.path for layer in tower.Descendants()],
      ['tower', 'tower/layers_000', 'tower/named', 'tower/last'],
    )

  def testSpecsOfAGiantLayerTakeNoMemory(self):
    params = _Linear.Params().Set(name='giant', dim=2**20)  # 4 TiB
    spec = params.Instantiate().VariableSpecs().w
    self.assertEqual(spec.num_bytes, 2**42)
    self.assertEqual(spec.collections, ('l2',))
    with tf.Graph().as_default():
      theta = params.Instantiate().AbstractTheta()
    self.assertEqual(theta.w.shape, [2**20, 2**20])

  def testVariablesExistOnceAndOnlyWhenAsked(self):
    tower = _TowerParams().Instantiate()
    with self.assertRaisesRegex(RuntimeError, 'tower has no variables yet'):
      tower.vars  # noqa: B018
    tower.InstantiateVariables()
    with self.assertRaisesRegex(RuntimeError, 'exist already'):
      tower.InstantiateVariables()
    self.assertEqual(tower.vars.layers[1].w.name, 'tower/named/w:0')
    self.assertFalse(tower.vars.last.steps.trainable)
    self.assertIs(tower.vars.last.w, tower.last.vars.w)

  def testVariablesInAFunctionAreRefused(self):
    tower = _TowerParams().Instantiate()
    with self.assertRaisesRegex(RuntimeError, 'not inside, a tf.function'):
      tf.function(tower.InstantiateVariables, autograph=False)()

  def testFPropIsAFunctionOfTheta(self):
    tower = _TowerParams().Instantiate()
    tower.InstantiateVariables()
    x = tf.ones([2, 3])
    self.assertAllClose(
      tower(x), tf.function(tower.FProp, autograph=False)(tower.theta, x)
    )
    doubled = tf.nest.map_structure(lambda t: 2.0 * t, tower.theta)
    self.assertAllClose(tower.FProp(doubled, x), 8.0 * tower(x))

  def testGradientsReachTheVariablesThroughTheta(self):
    tower = _TowerParams().Instantiate()
    tower.InstantiateVariables()
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tower(tf.ones([2, 3])))
    self.assertIsNotNone(tape.gradient(loss, tower.vars.layers[0].w))

  def testDtypesAndSeedsComeFromTheParent(self):
    params = _TowerParams(dtype=tf.float64, random_seed=7)
    params.last.dtype = tf.bfloat16
    tower = params.Instantiate()
    specs = tower.VariableSpecs()
    self.assertEqual(specs.layers[0].w.dtype, tf.float64)
    self.assertEqual(specs.last.w.dtype, tf.bfloat16)
    self.assertEqual(specs.layers[0].steps.dtype, tf.float32)
    self.assertEqual(specs.layers[0].w.seed, 7)
    self.assertEqual(tower.last.fprop_dtype, tf.bfloat16)

  def testInitialValuesComeFromTheParent(self):
    init = base_layer.WeightInit.Constant(7.0)
    params = _TowerParams(params_init=init)
    params.last.params_init = base_layer.WeightInit.Constant(8.0)
    tower = params.Instantiate()
    tower.InstantiateVariables()
    self.assertAllEqual(tower.vars.layers[0].w, tf.fill([3, 3], 7.0))
    self.assertAllEqual(tower.vars.last.w, tf.fill([3, 3], 8.0))
    plain = _TowerParams().Instantiate().VariableSpecs()
    self.assertEqual(plain.last.w.init, base_layer.WeightInit.GlorotUniform())

  def testErrorsOfConstructorsHaveTheWholePath(self):
    params = _TowerParams()
    params.layers[1].dim = -1
    outer = _Tower.Params().Set(name='outer', layers=[params])
    with self.assertRaisesRegex(ValueError, 'outer/tower/named: the shape of'):
      outer.Instantiate()
    # The failure leaves nothing behind for the next layer.
    self.assertEqual(_TowerParams().Instantiate().path, 'tower')

  def testComputationInALowerPrecision(self):
    tower = _TowerParams(fprop_dtype=tf.bfloat16).Instantiate()
    tower.InstantiateVariables()
    self.assertEqual(tower.vars.last.w.dtype, tf.float32)
    self.assertEqual(tower.theta.last.w.dtype, tf.bfloat16)
    self.assertEqual(tower.theta.last.steps.dtype, tf.float32)

  def testParamsOfALayerAreFrozen(self):
    params = _TowerParams()
    tower = params.Instantiate()
    params.last.dim = 5
    self.assertEqual(tower.params.last.dim, 3)
    with self.assertRaises(TypeError):
      tower.params.last.dim = 5

  @parameterized.parameters(
    (_Linear.Params(), ValueError, '_Linear needs a name'),
    (
      _Linear.Params().Set(name='x', dim=0),
      ValueError,
      "x: the shape of 'w' must be of positive integers",
    ),
    (
      _Tower.Params().Set(
        name='x', layers=[_Linear.Params().Set(name='a') for _ in range(2)]
      ),
      ValueError,
      "x: two children are called 'a'",
    ),
  )
  def testWrongDeclarations(self, params, error, message):
    with self.assertRaisesRegex(error, message):
      params.Instantiate()

  def testTakenNames(self):
    class _Twice(_Linear):
      def __init__(self, params):
        super().__init__(params)
        self.CreateChild('w', _Linear.Params())

    params = _Linear.Params().Set(name='x')
    with self.assertRaisesRegex(ValueError, "x: 'w' is taken"):
      _Twice(params)

    class _Theta(_Linear):
      def __init__(self, params):
        super().__init__(params)
        self.CreateVariable('theta', WeightParams((3,)))

    with self.assertRaisesRegex(ValueError, "x: 'theta' is taken"):
      _Theta(params)


if __name__ == '__main__':
  tf.test.main()
