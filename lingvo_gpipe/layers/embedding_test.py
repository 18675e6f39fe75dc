"""Tests of embedding."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.layers import embedding, gradient_check

NestedMap = nested_map.NestedMap
_VOCABULARY, _DIM = 7, 4
_IDS = ((3, 0, 6), (3, 3, 1))


def _Layer(**kwargs):
  p = embedding.TokenEmbedding.Params().Set(
    name='embedding', dtype=tf.float64, vocab_size=_VOCABULARY, dim=_DIM
  )
  layer = p.Set(**kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


def _Waves(positions):
  """[...] -> [..., 4]: two rates, 1 and 1/100."""
  angles = np.asarray(positions, np.float64)
  return np.stack(
    [
      np.sin(angles),
      np.sin(angles / 100),
      np.cos(angles),
      np.cos(angles / 100),
    ],
    -1,
  )


class _OfIds:
  """The layer as a function of its weights alone, for gradient_check."""

  def __init__(self, layer):
    self._layer = layer
    self.theta = layer.theta
    self.VariableSpecs = layer.VariableSpecs

  def FProp(self, theta, unused_inputs):
    return self._layer.FProp(theta, tf.constant(_IDS))


class EmbeddingTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    scale=[False, True],
    positions=['none', 'sinusoidal'],
    dtype=[tf.int32, tf.int64],
  )
  def testFProp(self, scale, positions, dtype):
    layer = _Layer(scale_sqrt_depth=scale, positions=positions)
    expected = layer.vars.w.numpy()[np.array(_IDS)] * (2.0 if scale else 1.0)
    if positions == 'sinusoidal':
      expected = expected + _Waves([0, 1, 2])
    self.assertAllClose(layer(tf.constant(_IDS, dtype)), expected, 1e-12)

  def testGivenPositionsAndOtherFields(self):
    layer = _Layer()
    positions = [[0, 1, 0], [0, 1, 500]]
    inputs = NestedMap(
      ids=tf.constant(_IDS),
      positions=tf.constant(positions),
      paddings=tf.zeros([2, 3]),
      nothing=None,
    )
    outputs = layer(inputs)
    self.assertEqual(set(outputs), {'x', 'paddings', 'nothing'})
    self.assertIs(outputs.paddings, inputs.paddings)
    expected = 2.0 * layer.vars.w.numpy()[np.array(_IDS)] + _Waves(positions)
    self.assertAllClose(outputs.x, expected, 1e-12)
    self.assertIn('ids', inputs)

  def testPositionsOfHalfPrecision(self):
    # Computed in it, 1001 would be 1000.
    waves = embedding.SinusoidalPositions(tf.constant([1001]), 4, tf.bfloat16)
    self.assertEqual(waves.dtype, tf.bfloat16)
    self.assertAllClose(tf.cast(waves, tf.float64), _Waves([1001]), 0.01, 0.01)

  def testSizesKnownAtRunTimeOnly(self):
    layer = _Layer()
    spec = tf.TensorSpec([None, None], tf.int32)
    function = tf.function(layer, input_signature=[spec], autograph=False)
    self.assertAllClose(function(tf.constant(_IDS)), layer(tf.constant(_IDS)))

  def testInit(self):
    layer = _Layer(vocab_size=1000, dim=16)
    self.assertAllClose(np.std(layer.vars.w.numpy()), 0.25, rtol=0.02)

  def testGradients(self):
    gradient_check.AssertGradients(self, _OfIds(_Layer()), None)
    layer = _Layer()
    with tf.GradientTape() as tape:
      outputs = layer(tf.constant(_IDS))
    self.assertIsInstance(
      tape.gradient(outputs, layer.vars.w), tf.IndexedSlices
    )

  def testDropout(self):
    layer = _Layer(keep_prob=0.5)
    outputs = []
    for step in (1, 1, 2):
      with fprop_context.FPropContext(do_eval=False, global_step=step):
        outputs.append(layer(tf.constant(_IDS)))
    self.assertAllEqual(outputs[0], outputs[1])
    self.assertNotAllClose(outputs[0], outputs[2])

  def testHalfPrecision(self):
    layer = _Layer(dtype=tf.float32, fprop_dtype=tf.bfloat16)
    self.assertEqual(layer(tf.constant(_IDS)).dtype, tf.bfloat16)
    self.assertEqual(layer.VariableSpecs().w.dtype, tf.float32)

  def testSharedName(self):
    self.assertEqual(_Layer().SharedWeights(), {})
    self.assertEqual(_Layer(shared_name='e').SharedWeights(), {'e': 'w'})

  def testTiedTable(self):
    layer = _Layer(tied_weight='e')
    self.assertEqual(layer.UsedWeights(), ('e',))
    self.assertEqual(tf.nest.flatten(layer.VariableSpecs()), [])
    other = _Layer(shared_name='e')
    ids = tf.constant(_IDS)
    with fprop_context.FPropContext(
      do_eval=True, shared_weights={'e': other.vars.w}
    ):
      self.assertAllEqual(layer(ids), other(ids))
    shared = {'e': tf.zeros([_VOCABULARY, 9], tf.float64)}
    with fprop_context.FPropContext(do_eval=True, shared_weights=shared):
      with self.assertRaisesRegex(ValueError, r"'e' is \(7, 9\), not \(7, 4\)"):
        layer(ids)

  def testUnknownIds(self):
    # Where the kernel is a processor's.
    with tf.device('/cpu:0'):
      for wrong in (-1, _VOCABULARY):
        with self.assertRaises(tf.errors.InvalidArgumentError):
          _Layer()(tf.constant([[0, wrong]]))

  @parameterized.parameters(
    ({'vocab_size': 0}, 'vocab_size=0 must be 1 or more'),
    ({'dim': 0}, 'dim=0 must be 1 or more'),
    ({'dim': 5}, "dim=5 must be even for positions='sinusoidal'"),
    ({'positions': 'learned'}, "positions='learned' is neither"),
    (
      {'tied_weight': 'a', 'shared_name': 'b'},
      "a table of another cell, tied_weight='a', cannot be lent as",
    ),
  )
  def testWrongParams(self, params, message):
    with self.assertRaisesRegex(ValueError, f'embedding: {message}'):
      _Layer(**params)


if __name__ == '__main__':
  tf.test.main()
