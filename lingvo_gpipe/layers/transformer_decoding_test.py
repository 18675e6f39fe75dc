"""A token at a time, blocks compute what they do for whole sequences."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.layers import gradient_check, transformer

NestedMap = nested_map.NestedMap
_BATCH, _TIME, _SOURCE_TIME, _DIM, _SOURCE_DIM = 2, 5, 3, 4, 6


def _Layer(**kwargs):
  p = transformer.TransformerBlock.Params().Set(
    name='block', dtype=tf.float64, dim=_DIM, hidden_dim=7, num_heads=2
  )
  layer = p.Set(**{'causal': True, **kwargs}).Instantiate()
  layer.InstantiateVariables()
  return layer


def _Decode(layer, x, source=None, source_paddings=None):
  """The layer on x [rows, time, dim], one token after the other."""
  theta = layer.theta
  states = layer.InitStates(theta, x.shape[0], _TIME + 2, source)
  outputs = []
  for step in range(x.shape[1]):
    y, states = layer.ExtendStep(
      theta, x[:, step], states, tf.constant(step), source_paddings
    )
    outputs.append(y)
  return tf.stack(outputs, 1)


class TransformerDecodingTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters({}, {'head_dim': 3}, {'norm_use_bias': False})
  def testOwnSequence(self, **params):
    layer = _Layer(**params)
    x = gradient_check.Draw([_BATCH, _TIME, _DIM], 1)
    self.assertAllClose(_Decode(layer, x), layer(x), rtol=1e-12)

  @parameterized.parameters(1, 3)
  def testSourceHasSeveralSequences(self, sequences):
    layer = _Layer(source_dim=_SOURCE_DIM)
    x = gradient_check.Draw([_BATCH * sequences, _TIME, _DIM], 1)
    source = gradient_check.Draw([_BATCH, _SOURCE_TIME, _SOURCE_DIM], 2)
    paddings = tf.constant([[0.0, 0, 0], [0, 0, 1]])
    expected = layer(
      NestedMap(
        x=x,
        source=tf.repeat(source, sequences, 0),
        source_paddings=tf.repeat(paddings, sequences, 0),
      )
    ).x
    self.assertAllClose(
      _Decode(layer, x, source, paddings), expected, rtol=1e-12
    )

  def testStatesHoldWhatWasWritten(self):
    layer = _Layer()
    x = gradient_check.Draw([_BATCH, _TIME, _DIM], 1)
    states = layer.InitStates(layer.theta, _BATCH, _TIME)
    self.assertEqual(states.own.key.shape, (_BATCH, 2, _TIME, 2))
    _, states = layer.ExtendStep(layer.theta, x[:, 0], states, tf.constant(2))
    written = tf.reduce_any(states.own.key != 0.0, [0, 1, 3])
    self.assertAllEqual(written, [False, False, True, False, False])

  def testNotCausal(self):
    layer = _Layer(causal=False)
    with self.assertRaisesRegex(ValueError, 'block: causal=False: a block'):
      layer.InitStates(layer.theta, 1, 2)


if __name__ == '__main__':
  tf.test.main()
