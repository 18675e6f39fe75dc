"""Tests of transformer."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.layers import gradient_check, transformer

NestedMap = nested_map.NestedMap
_BATCH, _TIME, _SOURCE_TIME, _DIM, _SOURCE_DIM = 2, 5, 3, 4, 6


def _Layer(**kwargs):
  p = transformer.TransformerBlock.Params().Set(
    name='block', dtype=tf.float64, dim=_DIM, hidden_dim=7, num_heads=2
  )
  layer = p.Set(**kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


def _X():
  return gradient_check.Draw([_BATCH, _TIME, _DIM], 1)


def _Inputs():
  """x and all fields that a block understands."""
  return NestedMap(
    x=_X(),
    paddings=tf.constant([[0.0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], tf.float64),
    segment_ids=tf.constant([[1, 1, 1, 2, 2], [1, 1, 2, 2, 2]]),
    source=gradient_check.Draw([_BATCH, _SOURCE_TIME, _SOURCE_DIM], 2),
    source_paddings=tf.constant([[0.0, 0, 0], [0, 0, 1]], tf.float64),
    source_segment_ids=tf.constant([[1, 2, 2], [1, 2, 2]]),
  )


def _Project(w, x):
  return x @ w.w + (w.b if 'b' in w else 0.0)


def _Norm(w, x):
  mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
  y = (x - mean) / np.sqrt(variance + 1e-6) * w.gamma
  return y + (w.beta if 'beta' in w else 0.0)


def _Attend(q, k, v, seen):
  """Two heads; -inf where nothing is seen."""
  results = []
  for columns in (slice(0, 2), slice(2, 4)):
    scores = q[..., columns] @ k[..., columns].swapaxes(1, 2) / np.sqrt(2)
    scores = np.exp(np.where(seen, scores, -np.inf))
    results.append(scores / scores.sum(-1, keepdims=True) @ v[..., columns])
  return np.concatenate(results, -1)


def _Expected(theta, x, seen, source=None, source_seen=None):
  """The block by its definition."""
  theta = tf.nest.map_structure(np.asarray, theta)
  x = np.asarray(x)
  qkv = _Project(theta.attention.qkv, _Norm(theta.attention_norm, x))
  y = _Attend(*np.split(qkv, 3, -1), seen)
  x = x + _Project(theta.attention.post, y)
  if source is not None:
    w = theta.source_attention
    q = _Project(w.query, _Norm(theta.source_attention_norm, x))
    k, v = np.split(_Project(w.kv, np.asarray(source)), 2, -1)
    x = x + _Project(w.post, _Attend(q, k, v, source_seen))
  w = theta.feed_forward
  hidden = _Project(w.hidden, _Norm(theta.feed_forward_norm, x))
  return x + _Project(w.output, np.maximum(hidden, 0.0))


class TransformerBlockTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    use_bias=[False, True], norm_use_bias=[False, True], causal=[False, True]
  )
  def testTensor(self, use_bias, norm_use_bias, causal):
    layer = _Layer(
      use_bias=use_bias, norm_use_bias=norm_use_bias, causal=causal
    )
    theta = gradient_check.RandomTheta(layer)
    seen = np.tri(_TIME) > 0 if causal else np.ones([_TIME, _TIME], bool)
    self.assertAllClose(layer.FProp(theta, _X()), _Expected(theta, _X(), seen))

  def testAllFields(self):
    layer = _Layer(source_dim=_SOURCE_DIM)
    theta = gradient_check.RandomTheta(layer)
    inputs = _Inputs()
    inputs.other = None
    outputs = layer.FProp(theta, inputs)
    array = inputs.Transform(lambda x: None if x is None else x.numpy())
    ids = array.segment_ids[:, :, None]
    seen = (ids == array.segment_ids[:, None]) & (array.paddings == 0)[:, None]
    source_seen = ids == array.source_segment_ids[:, None]
    source_seen &= (array.source_paddings == 0)[:, None]
    expected = _Expected(theta, array.x, seen, array.source, source_seen)
    # The padded token sees the one before it, of its own segment.
    self.assertAllClose(outputs.x, expected)
    tf.nest.assert_same_structure(outputs, inputs)
    self.assertIs(outputs.source, inputs.source)
    self.assertAllEqual(inputs.x, _X())

  def testPaddingIsAsGoodAsTruncation(self):
    layer = _Layer()
    paddings = tf.constant([[0, 0, 0, 1, 1]] * _BATCH)
    outputs = layer(NestedMap(x=_X(), paddings=paddings))
    self.assertAllClose(outputs.x[:, :3], layer(_X()[:, :3]))

  def testNothingComesFromTheFuture(self):
    layer = _Layer(causal=True)
    changed = tf.concat([_X()[:, :3], 9.0 * _X()[:, 3:]], 1)
    self.assertAllEqual(layer(_X())[:, :3], layer(changed)[:, :3])

  @parameterized.parameters(
    'residual_keep_prob', 'attention_keep_prob', 'hidden_keep_prob'
  )
  def testDropout(self, name):
    layer = _Layer(**{name: 0.5})
    outputs = []
    for step in (1, 1, 2):
      with fprop_context.FPropContext(do_eval=False, global_step=step):
        outputs.append(layer(_X()))
    self.assertAllEqual(outputs[0], outputs[1])
    self.assertNotAllClose(outputs[0], outputs[2])
    self.assertAllClose(layer(_X()), _Layer()(_X()))

  def testOutputInitScale(self):
    usual = _Layer(source_dim=_SOURCE_DIM)
    scaled = _Layer(source_dim=_SOURCE_DIM, output_init_scale=0.5)
    for name, variable in scaled.vars.FlattenItems():
      is_last = name.endswith(('post.w', 'output.w'))
      expected = usual.vars.GetItem(name) * (0.5 if is_last else 1.0)
      self.assertAllClose(variable, expected, msg=name)

  def testFeedForwardInitScale(self):
    usual, scaled = _Layer(), _Layer(feed_forward_init_scale=0.25)
    for name, variable in scaled.vars.FlattenItems():
      smaller = name.startswith('feed_forward.') and name.endswith('.w')
      expected = usual.vars.GetItem(name) * (0.25 if smaller else 1.0)
      self.assertAllClose(variable, expected, msg=name)

  def testHeadDim(self):
    layer = _Layer(head_dim=3)
    self.assertEqual(layer.vars.attention.qkv.w.shape, (_DIM, 18))
    self.assertEqual(layer(_X()).shape, _X().shape)

  def testHalfPrecision(self):
    layer = _Layer(dtype=tf.float32, fprop_dtype=tf.bfloat16, causal=True)
    for spec in tf.nest.flatten(layer.VariableSpecs()):
      self.assertEqual(spec.dtype, tf.float32, spec.path)
    x = tf.cast(_X(), tf.bfloat16)
    outputs = layer(x)
    self.assertEqual(outputs.dtype, tf.bfloat16)
    expected = _Expected(layer.vars, tf.cast(x, tf.float32), np.tri(_TIME) > 0)
    self.assertAllClose(tf.cast(outputs, tf.float64), expected, 0.05, 0.05)

  def testGradients(self):
    layer = _Layer(
      activation='tanh', residual_keep_prob=0.8, source_dim=_SOURCE_DIM
    )
    inputs = NestedMap(x=_X(), source=_Inputs().source)
    gradient_check.AssertGradients(self, layer, inputs)

  @parameterized.parameters(
    ({'dim': 5}, 'block/attention: dim=5 is not a multiple of num_heads=2'),
    ({'hidden_dim': 0}, 'block/feed_forward: hidden_dim=0 must be'),
    ({'source_dim': 0}, 'block/source_attention: source_dim=0 must be'),
    ({'residual_keep_prob': 0.0}, 'block/attention_dropout: keep_prob=0.0'),
  )
  def testWrongParams(self, params, message):
    with self.assertRaisesRegex(ValueError, message):
      _Layer(**params)

  def testNoSource(self):
    layer = _Layer(source_dim=_SOURCE_DIM)
    with self.assertRaisesRegex(
      ValueError, 'block/source_attention: source_dim=6 needs'
    ):
      layer(_X())


if __name__ == '__main__':
  tf.test.main()
