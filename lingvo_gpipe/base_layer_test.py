"""Tests of base_layer."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, fprop_context, nested_map

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
    self.ReportStatistics(nested_map.NestedMap(rows=tf.shape(inputs)[0]))
    self.AddAuxLoss('norm', tf.reduce_sum(inputs))
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


class ReportsTest(tf.test.TestCase):
  def testOnlyTrainingReports(self):
    layer = _Linear.Params().Set(name='a').Instantiate()
    layer.InstantiateVariables()
    with fprop_context.FPropContext(do_eval=False) as context:
      layer(tf.ones([2, 3]))
    self.assertAllEqual(context.statistics['a'].rows, 2)
    self.assertAllClose(context.aux_losses, {'a/norm': 6.0})
    with fprop_context.FPropContext(do_eval=True) as context:
      layer(tf.ones([2, 3]))
    self.assertEmpty(context.statistics)
    self.assertEmpty(context.aux_losses)

  def testALayerThatReportsMustApply(self):
    layer = _Linear.Params().Set(name='a').Instantiate()
    with self.assertRaisesRegex(NotImplementedError, 'a reports statistics'):
      layer.ApplyStatistics(nested_map.NestedMap())


class StatelessSeedTest(tf.test.TestCase):
  def _Seed(self, layer, step, micro_batch, name=''):
    with fprop_context.FPropContext(
      do_eval=False, global_step=step, micro_batch=micro_batch
    ):
      return tuple(layer.StatelessSeed(name).numpy())

  def testNeverCollides(self):
    tower = _TowerParams().Instantiate()
    # Beyond 2**24 a float32 could not tell neighbours apart.
    steps = [0, 1, 2**24, 2**24 + 1, 2**31, 2**40 + 1]
    seeds = {
      self._Seed(layer, step, micro_batch, name)
      for layer in (tower.last, tower.layers[0])
      for step in steps
      for micro_batch in (0, 1, 2**16)
      for name in ('', 'mask')
    }
    self.assertLen(seeds, 2 * 6 * 3 * 2)

  def testIsAFunctionOfItsArguments(self):
    a, b = (_TowerParams().Instantiate().last for _ in range(2))
    self.assertEqual(self._Seed(a, 5, 1), self._Seed(b, 5, 1))
    self.assertEqual(
      self._Seed(a, 5, 1), self._Seed(a, tf.constant(5), tf.constant(1))
    )
    other = _TowerParams(random_seed=9).Instantiate().last
    self.assertNotEqual(self._Seed(a, 5, 1), self._Seed(other, 5, 1))


if __name__ == '__main__':
  tf.test.main()
