"""Tests of attention."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.layers import attention, gradient_check

_BATCH, _TIME, _SOURCE_TIME, _DIM, _SOURCE_DIM = 2, 5, 3, 4, 6


def _Layer(**kwargs):
  p = attention.MultiHeadAttention.Params().Set(
    name='attention', dtype=tf.float64, dim=_DIM, num_heads=2
  )
  layer = p.Set(**kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


def _Queries():
  return gradient_check.Draw([_BATCH, _TIME, _DIM], 1)


def _Source():
  return gradient_check.Draw([_BATCH, _SOURCE_TIME, _SOURCE_DIM], 2)


def _Expected(layer, theta, queries, source=None, seen=None):
  """The definition, query by query and head by head.

  Args:
    layer: for its params.
    theta: its weights.
    queries: [batch, time, dim].
    source: None or [batch, source time, source_dim].
    seen: None or bool [batch, time, source time].

  Returns:
    [batch, time, dim].
  """
  p = layer.params
  theta = tf.nest.map_structure(np.asarray, theta)

  def _Project(w, x):
    return x @ w.w + (w.b if p.use_bias else 0.0)

  queries = np.asarray(queries)
  if source is None:
    q, k, v = np.split(_Project(theta.qkv, queries), 3, -1)
  else:
    q = _Project(theta.query, queries)
    k, v = np.split(_Project(theta.kv, np.asarray(source)), 2, -1)
  outputs = np.zeros_like(q)
  width = q.shape[-1] // p.num_heads
  for b in range(q.shape[0]):
    for t in range(q.shape[1]):
      visible = np.arange(k.shape[1])
      if seen is not None:
        visible = visible[seen[b, t]]
      for head in range(p.num_heads):
        columns = slice(head * width, (head + 1) * width)
        keys, values = k[b, visible, columns], v[b, visible, columns]
        scores = np.exp(keys @ q[b, t, columns] / np.sqrt(width))
        outputs[b, t, columns] = scores @ values / scores.sum()
  return _Project(theta.post, outputs)


class _WithNames:
  """A layer whose inputs are a NestedMap of arguments, for gradient_check."""

  def __init__(self, layer, **fixed):
    self._layer = layer
    self._fixed = fixed
    self.theta = layer.theta
    self.VariableSpecs = layer.VariableSpecs

  def FProp(self, theta, inputs):
    return self._layer.FProp(theta, **inputs, **self._fixed)


class AttentionTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    use_bias=[False, True], head_dim=[None, 3], causal=[False, True]
  )
  def testOwnSequence(self, use_bias, head_dim, causal):
    layer = _Layer(use_bias=use_bias, head_dim=head_dim, causal=causal)
    theta = gradient_check.RandomTheta(layer)
    seen = np.tri(_TIME, dtype=bool)[None].repeat(_BATCH, 0) if causal else None
    self.assertAllClose(
      layer.FProp(theta, _Queries()),
      _Expected(layer, theta, _Queries(), seen=seen),
    )

  @parameterized.product(use_bias=[False, True], head_dim=[None, 3])
  def testOtherSequence(self, use_bias, head_dim):
    layer = _Layer(source_dim=_SOURCE_DIM, use_bias=use_bias, head_dim=head_dim)
    theta = gradient_check.RandomTheta(layer)
    self.assertAllClose(
      layer.FProp(theta, _Queries(), _Source()),
      _Expected(layer, theta, _Queries(), _Source()),
    )

  @parameterized.parameters(False, True)
  def testAllMasksAtOnce(self, causal):
    layer = _Layer(causal=causal)
    theta = gradient_check.RandomTheta(layer)
    paddings = np.array([[0, 0, 0, 0, 1], [0, 1, 0, 0, 0]], np.float64)
    ids = np.array([[1, 1, 1, 2, 2], [3, 3, 3, 3, 3]])
    seen = (ids[:, :, None] == ids[:, None]) & (paddings == 0)[:, None]
    if causal:
      seen &= np.tri(_TIME, dtype=bool)
    for padded in (paddings, paddings > 0):
      outputs = layer.FProp(
        theta, _Queries(), paddings=padded, segment_ids=tf.constant(ids)
      )
      self.assertAllClose(
        outputs, _Expected(layer, theta, _Queries(), seen=seen)
      )

  def testMasksOfTheOtherSequence(self):
    layer = _Layer(source_dim=_SOURCE_DIM)
    theta = gradient_check.RandomTheta(layer)
    ids = np.array([[1, 1, 2, 2, 2], [1, 1, 1, 1, 1]])
    source_ids = np.array([[1, 2, 2], [1, 1, 1]])
    paddings = np.array([[0, 0, 1], [0, 0, 1]], np.float64)
    seen = ids[:, :, None] == source_ids[:, None]
    seen &= (paddings == 0)[:, None]
    outputs = layer.FProp(
      theta,
      _Queries(),
      _Source(),
      paddings=paddings,
      segment_ids=tf.constant(ids),
      source_segment_ids=tf.constant(source_ids),
    )
    self.assertAllClose(
      outputs, _Expected(layer, theta, _Queries(), _Source(), seen)
    )

  def testPaddingIsAsGoodAsTruncation(self):
    layer = _Layer()
    paddings = tf.constant([[0.0, 0, 0, 1, 1]] * _BATCH, tf.float64)
    self.assertAllClose(
      layer.FProp(layer.theta, _Queries(), paddings=paddings)[:, :3],
      layer(_Queries()[:, :3]),
    )

  def testPackedSentencesAreAsGoodAsSeparateOnes(self):
    layer = _Layer(causal=True)
    ids = tf.constant([[1, 1, 2, 2, 2]] * _BATCH)
    outputs = layer.FProp(layer.theta, _Queries(), segment_ids=ids)
    self.assertAllClose(outputs[:, :2], layer(_Queries()[:, :2]))
    self.assertAllClose(outputs[:, 2:], layer(_Queries()[:, 2:]))

  def testNothingComesFromTheFuture(self):
    layer = _Layer(causal=True)
    x = _Queries()
    changed = tf.concat([x[:, :3], 9.0 * x[:, 3:]], 1)
    self.assertAllEqual(layer(x)[:, :3], layer(changed)[:, :3])
    self.assertNotAllClose(layer(x)[:, 3:], layer(changed)[:, 3:])

  @parameterized.parameters(tf.bfloat16, tf.float32, tf.float64)
  def testNothingToSeeIsFinite(self, dtype):
    layer = _Layer(dtype=dtype)
    x = tf.cast(_Queries(), dtype)
    paddings = tf.ones([_BATCH, _TIME], dtype)
    with tf.GradientTape() as tape:
      tape.watch(x)
      outputs = layer.FProp(layer.theta, x, paddings=paddings)
    for value in (outputs, tape.gradient(outputs, x)):
      self.assertAllEqual(
        tf.math.is_finite(value), tf.ones(value.shape, tf.bool)
      )

  def testSizesKnownAtRunTimeOnly(self):
    layer = _Layer(causal=True)
    spec = tf.TensorSpec([None, None, _DIM], tf.float64)
    function = tf.function(layer, input_signature=[spec], autograph=False)
    self.assertAllClose(function(_Queries()), layer(_Queries()))

  def testDropout(self):
    layer = _Layer(keep_prob=0.5)
    outputs = []
    for step in (1, 1, 2):
      with fprop_context.FPropContext(do_eval=False, global_step=step):
        outputs.append(layer(_Queries()))
    self.assertAllEqual(outputs[0], outputs[1])
    self.assertNotAllClose(outputs[0], outputs[2])
    self.assertNotAllClose(outputs[0], layer(_Queries()))

  def testHalfPrecision(self):
    layer = _Layer(dtype=tf.float32, fprop_dtype=tf.bfloat16)
    self.assertEqual(layer.VariableSpecs().qkv.w.dtype, tf.float32)
    x = tf.cast(_Queries(), tf.bfloat16)
    outputs = layer(x)
    self.assertEqual(outputs.dtype, tf.bfloat16)
    self.assertAllClose(
      tf.cast(outputs, tf.float64),
      _Expected(layer, layer.vars, tf.cast(x, tf.float32)),
      0.05,
      0.05,
    )

  def testSoftmaxOfHalfPrecisionIsThatOfFloat32(self):
    layer = _Layer(dtype=tf.bfloat16)
    with tf.Graph().as_default() as graph:
      x = tf.compat.v1.placeholder(tf.bfloat16, [_BATCH, _TIME, _DIM])
      layer.FProp(layer.AbstractTheta(), x)
    types = [
      op.outputs[0].dtype
      for op in graph.get_operations()
      if op.type == 'Softmax'
    ]
    self.assertEqual(types, [tf.float32])

  def testOutputInitScale(self):
    usual, scaled = _Layer(), _Layer(output_init_scale=0.5)
    self.assertAllClose(scaled.vars.post.w, 0.5 * usual.vars.post.w)
    self.assertAllClose(scaled.vars.qkv.w, usual.vars.qkv.w)

  def testGradients(self):
    paddings = tf.constant([[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    ids = tf.constant([[1, 1, 2, 2, 2], [1, 1, 1, 1, 1]])
    layer = _WithNames(
      _Layer(causal=True, keep_prob=0.8), paddings=paddings, segment_ids=ids
    )
    inputs = nested_map.NestedMap(queries=_Queries())
    gradient_check.AssertGradients(self, layer, inputs)

  def testGradientsByTheOtherSequence(self):
    layer = _WithNames(
      _Layer(source_dim=_SOURCE_DIM), paddings=tf.constant([[0, 0, 1]] * 2)
    )
    inputs = nested_map.NestedMap(queries=_Queries(), source=_Source())
    gradient_check.AssertGradients(self, layer, inputs)

  @parameterized.parameters(
    ({'dim': 0}, 'attention: dim=0 must be 1 or more'),
    ({'num_heads': 0}, 'attention: num_heads=0 must be'),
    ({'head_dim': 0}, 'attention: head_dim=0 must be'),
    ({'source_dim': 0}, 'attention: source_dim=0 must be'),
    ({'num_heads': 3}, 'attention: dim=4 is not a multiple of num_heads=3'),
    ({'causal': True, 'source_dim': 6}, 'causal=True .* source_dim=6'),
    ({'keep_prob': 0.0}, 'keep_prob=0.0 must be'),
  )
  def testWrongParams(self, params, message):
    with self.assertRaisesRegex(ValueError, message):
      _Layer(**params)

  def testWrongArguments(self):
    own, other = _Layer(), _Layer(source_dim=_SOURCE_DIM)
    queries, source = _Queries(), _Source()
    ids = tf.ones([_BATCH, _TIME], tf.int32)
    for layer, kwargs, message in (
      (own, {'queries': source}, r'queries .* must be \[batch, time, dim=4\]'),
      (own, {'source': source}, 'source is given, but source_dim=None'),
      (own, {'source_segment_ids': ids}, 'source_segment_ids is given, but'),
      (other, {}, 'source_dim=6 needs the argument source'),
      (other, {'source': queries}, 'source .* must be .* source_dim=6'),
      (
        other,
        {'source': source, 'segment_ids': ids},
        'give segment_ids and source_segment_ids, or neither',
      ),
    ):
      with self.assertRaisesRegex(ValueError, f'attention: {message}'):
        layer.FProp(layer.theta, **{'queries': queries, **kwargs})


if __name__ == '__main__':
  tf.test.main()
