"""Tests of keras_layer."""

import random
import resource

import keras
import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context
from lingvo_gpipe.gpipe import gpipe, placement, plain_model, test_cells
from lingvo_gpipe.layers import gradient_check, keras_layer

KerasLayer = keras_layer.KerasLayer
layers = keras.layers


def setUpModule():
  placement.ConfigureLogicalCpus(2)
  _Counting.calls = keras.Variable(0.0)
  keras.random.uniform([])  # Else a graph makes the global generator.


def _Attention(**kwargs):
  x = keras.Input((5, 4))
  y = layers.MultiHeadAttention(2, 3, **kwargs)(x, x)
  return keras.Model(x, layers.Add()([x, y]))


def _Perceptron(*more):
  return keras.Sequential(
    [layers.Dense(6, activation='tanh'), *more, layers.Dense(4)]
  )


def _Cell(layer, shape=None, name='cell', dtype=tf.float64, **kwargs):
  p = KerasLayer.FromLayer(layer, shape)
  return p.Set(name=name, dtype=dtype, **kwargs).Instantiate()


def _Train(cell, x, step=3, micro_batch=1):
  with fprop_context.FPropContext(
    do_eval=False, global_step=step, micro_batch=micro_batch
  ):
    return cell(x)


def _Net(cells, **kwargs):
  p = gpipe.GPipe.Params().Set(name='net', cells=cells, **kwargs)
  return p.Instantiate()


@keras.saving.register_keras_serializable('keras_layer_test')
class _GlobalNoise(keras.Layer):
  """Has no generator of its own."""

  def call(self, x):
    return x + keras.random.normal(keras.ops.shape(x))


@keras.saving.register_keras_serializable('keras_layer_test')
class _Counting(keras.Layer):
  """Counts its calls in a variable of everybody."""

  calls: keras.Variable

  def call(self, x, training=False):
    if training:
      _Counting.calls.assign_add(1.0)
    return x


@keras.saving.register_keras_serializable('keras_layer_test')
class _TwoDraws(keras.Layer):
  """Two draws of one generator, of any seed."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.generator = keras.random.SeedGenerator(7)

  def call(self, x):
    draws = [
      keras.random.uniform(keras.ops.shape(x), seed=self.generator)
      for _ in range(2)
    ]
    return keras.ops.stack(draws)


class EqualsKerasTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.named_parameters(
    ('dense', lambda: layers.Dense(3, activation='gelu'), (4,)),
    ('dense_rank_3', lambda: layers.Dense(3, use_bias=False), (5, 4)),
    ('layer_norm', lambda: layers.LayerNormalization(), (5, 4)),
    ('attention', _Attention, (5, 4)),
    ('conv', lambda: layers.Conv2D(3, (2, 3), padding='same'), (5, 6, 2)),
    ('sequential', _Perceptron, (4,)),
    ('lstm', lambda: layers.LSTM(3, return_sequences=True), (5, 4)),
  )
  def testOutputsAndGradients(self, make, shape):
    keras.config.set_floatx('float64')  # Of inputs.
    self.addCleanup(keras.config.set_floatx, 'float32')
    keras.config.set_dtype_policy('float64')
    self.addCleanup(keras.config.set_dtype_policy, 'float32')
    layer = make()
    x = gradient_check.Draw([2, *shape], 1)
    layer(x)
    cell = _Cell(layer)  # It is built, so its input shape is known.
    self.assertEqual(cell.params.input_shape, shape)
    cell.InstantiateVariables()
    theta = gradient_check.RandomTheta(cell)
    in_order = [theta[name] for name in cell.weight_names]
    layer.set_weights(in_order)

    with tf.GradientTape() as tape:
      tape.watch(x)
      expected = layer(x, training=True)
      objective = tf.reduce_sum(tf.square(expected))
    expected_grads = tape.gradient(
      objective, [x, *(v.value for v in layer.weights)]
    )

    @tf.function(autograph=False)
    def _Run(x, weights):
      with tf.GradientTape() as tape:
        tape.watch([x, weights])
        with fprop_context.FPropContext(do_eval=False):
          outputs = cell.FProp(
            type(theta)(zip(cell.weight_names, weights, strict=True)), x
          )
        objective = tf.reduce_sum(tf.square(outputs))
      return outputs, tape.gradient(objective, [x, *weights])

    outputs, grads = _Run(x, in_order)
    self.assertEqual(outputs.dtype, tf.float64)
    self.assertAllClose(outputs, expected, rtol=1e-12, atol=1e-12)
    self.assertAllClose(grads, expected_grads, rtol=1e-10, atol=1e-10)

  @parameterized.parameters('none', 'partition', 'cell')
  def testInAPipeline(self, rematerialize):
    x = keras.Input((4,))
    model = keras.Model(x, layers.Add()([x, layers.Dense(4, 'tanh')(x)]))
    cells = [
      KerasLayer.FromLayer(_Perceptron(layers.Dropout(0.3)), (4,)),
      KerasLayer.FromLayer(model),
      KerasLayer.FromLayer(layers.LayerNormalization(), (4,)),
      KerasLayer.FromLayer(layers.GaussianNoise(0.2), (4,)),
      test_cells.Cells()[-1],
    ]
    net = _Net(
      cells,
      dtype=tf.float64,
      splits=[2, 3],
      num_micro_batches=2,
      rematerialize=rematerialize,
    )
    batch = test_cells.Batch(8)
    net.Plan(batch)
    net.InstantiateVariables()
    plain = plain_model.ComputeGradients(net.cells, batch, 2, 5)
    result = tf.function(net.ComputeGradients, autograph=False)(
      batch, tf.constant(5, tf.int64)
    )
    close = {'rtol': 1e-10, 'atol': 1e-12}
    self.assertAllClose(result.loss, plain.loss, **close)
    grads = [g for g in tf.nest.flatten(result.grads) if g is not None]
    self.assertAllClose(grads, plain.grads, **close)
    other_step = plain_model.ComputeGradients(net.cells, batch, 2, 6)
    self.assertNotAllClose(result.loss, other_step.loss)

  def testEvaluation(self):
    cell = _Cell(keras.Sequential([layers.Dropout(0.5)]), (4,))
    cell.InstantiateVariables()
    x = gradient_check.Draw([3, 4], 1)
    self.assertAllEqual(cell(x), x)


class RandomNumbersTest(tf.test.TestCase):
  def testMaskIsAFunctionOfStepAndMicroBatch(self):
    cell = _Cell(layers.Dropout(0.3, seed=1), (50,), dtype=tf.float32)
    cell.InstantiateVariables()
    x = tf.ones([4, 50])
    first = _Train(cell, x)
    self.assertAllEqual(_Train(cell, x), first)
    in_graph = tf.function(_Train, autograph=False)
    self.assertAllEqual(in_graph(cell, x, tf.constant(3, tf.int64)), first)
    self.assertNotAllEqual(_Train(cell, x, step=4), first)
    self.assertNotAllEqual(_Train(cell, x, micro_batch=2), first)
    kept = _Train(cell, tf.ones([400, 50])).numpy() != 0
    self.assertAllClose(kept.mean(), 0.7, atol=0.02)

  def testDrawsOfAGeneratorAreNotThoseOfTheNextMicroBatch(self):
    cell = _Cell(_TwoDraws(), (50,), dtype=tf.float32)
    cell.InstantiateVariables()
    draws = [_Train(cell, tf.ones([2, 50]), micro_batch=i) for i in range(2)]
    self.assertAllEqual(_Train(cell, tf.ones([2, 50])), draws[1])
    flat = [draw.numpy() for pair in draws for draw in pair]
    for i, one in enumerate(flat):
      for other in flat[:i]:
        self.assertNotAllClose(one, other)


class InitialValuesTest(tf.test.TestCase):
  def _Values(self, layer, shape=None, **kwargs):
    cell = _Cell(layer, shape, **kwargs)
    cell.InstantiateVariables()
    return {k: v.numpy() for k, v in cell.vars.items()}

  def testAreThoseOfTheInitializers(self):
    values = self._Values(
      layers.Dense(
        300,
        kernel_initializer=keras.initializers.RandomNormal(2.0, 0.1),
        bias_initializer=keras.initializers.Constant(0.25),
      ),
      (200,),
    )
    # Of 60,000 draws.
    self.assertAllClose(values['kernel'].mean(), 2.0, atol=0.003)
    self.assertAllClose(values['kernel'].std(), 0.1, atol=0.003)
    self.assertAllEqual(values['bias'], np.full([300], 0.25))

  def testDependOnPathAndSeedOnly(self):
    model = _Attention()
    state = random.getstate()
    first = self._Values(model)
    self.assertEqual(random.getstate(), state)
    random.random()
    self.assertAllClose(self._Values(_Attention()), first, rtol=0, atol=0)
    name = 'multi_head_attention_query_kernel'
    self.assertNotAllClose(first[name], first[name.replace('query', 'key')])
    for change in ({'name': 'other'}, {'random_seed': 9}):
      other = self._Values(_Attention(), **change)
      self.assertNotAllClose(first[name], other[name])

  def testFunctions(self):
    """The LSTM makes a function of its bias' initializer."""
    make = lambda: layers.LSTM(3, bias_initializer='random_normal')  # noqa: E731
    first = self._Values(make(), (5, 4))
    bias = first['lstm_cell_bias']
    self.assertAllEqual(bias[3:6], np.ones([3]))
    self.assertGreater(bias[:3].std(), 0)
    self.assertAllClose(self._Values(make(), (5, 4)), first, rtol=0, atol=0)

  def testNothingIsLeftForOthersToInitialize(self):
    cell = _Cell(layers.Dense(3), (4,))
    other = layers.Dense(2)
    other(tf.ones([1, 2]))  # Ends a stateless scope of its own.
    with keras.StatelessScope():
      pass
    self.assertLen(other.get_weights(), 2)
    with self.assertRaisesRegex(RuntimeError, 'cell has no variables yet'):
      _ = cell.vars


class SpecsTest(tf.test.TestCase):
  def testTextRoundTrip(self):
    for layer in (_Attention(dropout=0.1), layers.Conv2D(3, (2, 3))):
      p = KerasLayer.FromLayer(layer, (5, 4, 2)[: 3 - (layer.built)])
      q = KerasLayer.Params().FromText(p.ToText())
      self.assertEqual(p, q)
      self.assertEqual(
        repr(_Cell(layer, p.input_shape).VariableSpecs()),
        repr(
          q.Set(name='cell', dtype=tf.float64).Instantiate().VariableSpecs()
        ),
      )

  def testNamesDoNotCountTheLayersOfTheProcess(self):
    for _ in range(2):
      cell = _Cell(_Perceptron(layers.Dense(5, name='my_2')), (4,))
      self.assertEqual(
        cell.weight_names,
        (
          'dense_kernel',
          'dense_bias',
          'my_2_kernel',
          'my_2_bias',
          'dense_1_kernel',
          'dense_1_bias',
        ),
      )
    self.assertEqual(cell.VariableSpecs().my_2_bias.path, 'cell/my_2_bias')

  def testOnlyKernelsDecay(self):
    specs = _Cell(_Attention()).VariableSpecs()
    self.assertEqual(
      {name for name, spec in specs.items() if 'l2' in spec.collections},
      {name for name in specs if name.endswith('kernel')},
    )

  def testWhatIsNotTrainable(self):
    cell = _Cell(layers.Dense(3, trainable=False), (4,))
    self.assertFalse(cell.VariableSpecs().kernel.trainable)

  def testDtypes(self):
    model = keras.Sequential(
      [layers.Dense(3), layers.Dense(3), layers.Softmax(dtype='float64')]
    )
    for layer, expected in ((model, tf.float64), (_Attention(), tf.bfloat16)):
      shape = None if layer.built else (4,)
      cell = _Cell(layer, shape, dtype=None, fprop_dtype=tf.bfloat16)
      dtypes = {spec.dtype for spec in cell.VariableSpecs().values()}
      self.assertEqual(dtypes, {tf.float32})
      cell.InstantiateVariables()
      x = tf.ones([2, *cell.params.input_shape], tf.bfloat16)
      self.assertEqual(cell(x).dtype, expected)
    with self.assertRaisesRegex(ValueError, 'no policy for .* float64 and .*'):
      _Cell(layers.Dense(3), (4,), fprop_dtype=tf.float32)

  def testPlanningTakesNoMemory(self):
    width = 200_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    net = _Net(
      [
        KerasLayer.FromLayer(layers.Dense(width), (width,)),
        KerasLayer.FromLayer(layers.Dense(4), (width,)),
        test_cells.Cells()[-1],
      ],
      splits=[1, 2],
      num_micro_batches=2,
    )
    spec = test_cells.Batch(8, dtype=tf.float32)
    spec.inputs = tf.TensorSpec([8, width], tf.float32)
    plan = net.Plan(spec)
    self.assertEqual(
      net.VariableSpecs().cells[0].kernel.num_bytes, 4 * width * width
    )
    self.assertGreater(plan.stages[0].forward_flops, 2 * 4 * width * width)
    # The kernel has 160 GB.
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    self.assertLess(kilobytes, 1_000_000)


class RefusedTest(tf.test.TestCase):
  def _Fails(self, message, layer, shape=(4,)):
    with self.assertRaisesRegex(ValueError, f'^cell: .*{message}'):
      cell = _Cell(layer, shape, dtype=tf.float32)
      cell.InstantiateVariables()
      _Train(cell, tf.ones([2, *shape]))

  def testBatchNormalization(self):
    model = keras.Sequential([layers.Dense(4), layers.BatchNormalization()])
    self._Fails(
      'changes batch_normalization_moving_mean, .*layers.norm.BatchNorm', model
    )
    net = _Net([KerasLayer.FromLayer(model, (4,)), test_cells.Cells()[-1]])
    with self.assertRaisesRegex(ValueError, 'net/cells_000.*norm.BatchNorm'):
      net.Plan(test_cells.Batch(8, dtype=tf.float32))
    # It does nothing that could be lost where it is frozen.
    model.layers[1].trainable = False
    cell = _Cell(model, (4,), dtype=tf.float32)
    cell.InstantiateVariables()
    x = tf.random.stateless_normal([3, 4], (1, 2))
    self.assertAllEqual(_Train(cell, x), cell(x))

  def testWhatWouldBeLost(self):
    self._Fails(
      "'.*kernel' has a regularizer", layers.Dense(3, kernel_regularizer='l2')
    )
    self._Fails(
      "'.*kernel' has a constraint",
      layers.Dense(3, kernel_constraint='non_neg'),
    )
    self._Fails('adds a loss', layers.ActivityRegularization(l2=0.1))
    self._Fails('changes variables that do not belong', _Counting())
    self._Fails('SeedGenerator as an attribute', _GlobalNoise())
    net = _Net([KerasLayer.FromLayer(_GlobalNoise(), (4,))])
    with self.assertRaisesRegex(ValueError, 'SeedGenerator as an attribute'):
      net.Plan(test_cells.Batch(8, dtype=tf.float32))

  def testWhatCannotBeBuilt(self):
    x, y = keras.Input((4,)), keras.Input((4,))
    two = keras.Model([x, y], layers.Add()([x, y]))
    self._Fails('cannot build Functional for one input', two)
    self._Fails(
      'cannot build MultiHeadAttention', layers.MultiHeadAttention(2, 3), (5, 4)
    )
    self._Fails('cannot build Lambda', layers.Lambda(lambda x: x))
    with self.assertRaisesRegex(ValueError, 'not built for one input; give'):
      KerasLayer.FromLayer(layers.Dense(3))
    with self.assertRaisesRegex(ValueError, 'cell: set the params layer and'):
      KerasLayer.Params().Set(name='cell').Instantiate()

  def testInputsOfAnotherShape(self):
    cell = _Cell(layers.Dense(3), (4,))
    cell.InstantiateVariables()
    with self.assertRaisesRegex(
      ValueError, r'cell: inputs \(2, 5\) are not \[batch, \*input_shape=\(4,\)'
    ):
      cell(gradient_check.Draw([2, 5], 1))


if __name__ == '__main__':
  tf.test.main()
