"""Tests of softmax."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.layers import gradient_check, softmax

NestedMap = nested_map.NestedMap
_DIM, _VOCABULARY = 3, 5
_LABELS = ((0, 4, 2, 1), (3, 3, 0, 2))
_PADDINGS = ((0, 0, 0, 1), (0, 0, 1, 1))


def _Layer(**kwargs):
  p = softmax.SoftmaxLoss.Params().Set(
    name='softmax', dtype=tf.float64, dim=_DIM, vocab_size=_VOCABULARY
  )
  layer = p.Set(**kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


def _Inputs():
  return gradient_check.Draw([2, 4, _DIM], 1)


def _Batch(**kwargs):
  return NestedMap(labels=tf.constant(_LABELS), **kwargs)


def _Expected(logits, smoothing, paddings):
  """(totals of loss, log_pplx and accuracy, weight) by the definitions."""
  logits = logits.reshape(-1, _VOCABULARY)
  labels = np.array(_LABELS).reshape(-1)
  counted = 1.0 - np.array(paddings).reshape(-1)
  logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  hard = np.eye(_VOCABULARY)[labels]
  soft = (1.0 - smoothing) * hard + smoothing / _VOCABULARY
  values = {
    'loss': -(soft * logs).sum(-1),
    'log_pplx': -(hard * logs).sum(-1),
    'accuracy': logits.argmax(-1) == labels,
  }
  return {k: (v * counted).sum() for k, v in values.items()}, counted.sum()


class _Loss:
  """The loss as a function of weights and inputs, for gradient_check."""

  def __init__(self, layer):
    self._layer = layer
    self.theta = layer.theta
    self.VariableSpecs = layer.VariableSpecs

  def FProp(self, theta, inputs):
    batch = _Batch(paddings=tf.constant(_PADDINGS))
    return self._layer.FProp(theta, inputs, batch).loss.total


class SoftmaxTest(tf.test.TestCase, parameterized.TestCase):
  def _Check(self, result, logits, smoothing=0.0, paddings=_PADDINGS):
    totals, weight = _Expected(logits, smoothing, paddings)
    self.assertEqual(set(result), set(totals))
    for name, total in totals.items():
      self.assertAllClose(result[name].total, total, 1e-9, msg=name)
      self.assertAllClose(result[name].weight, weight)

  @parameterized.product(
    use_bias=[False, True], label_smoothing=[0.0, 0.1], padded=[False, True]
  )
  def testFProp(self, use_bias, label_smoothing, padded):
    layer = _Layer(
      use_bias=use_bias,
      label_smoothing=label_smoothing,
      paddings_field='paddings' if padded else None,
    )
    theta = gradient_check.RandomTheta(layer)
    x = 3.0 * _Inputs()
    logits = x.numpy() @ theta.w.numpy()
    if use_bias:
      logits += theta.b.numpy()
    batch = _Batch(paddings=tf.constant(_PADDINGS, tf.float64))
    self._Check(
      layer.FProp(theta, x, batch),
      logits,
      label_smoothing,
      _PADDINGS if padded else np.zeros([2, 4]),
    )

  def testPaddingsOfTheInputs(self):
    layer = _Layer()
    x = _Inputs()
    inputs = NestedMap(x=x, paddings=tf.constant(_PADDINGS) > 0)
    self._Check(layer(inputs, _Batch()), x.numpy() @ layer.vars.w.numpy())
    result = layer(NestedMap(x=x), _Batch())
    self.assertAllClose(result.loss.weight, 8.0)

  @parameterized.parameters(0.0, 0.1)
  def testClippedLogits(self, label_smoothing):
    layer = _Layer(
      logits_abs_max=0.7, use_bias=False, label_smoothing=label_smoothing
    )
    x = 3.0 * _Inputs()
    logits = np.clip(x.numpy() @ layer.vars.w.numpy(), -0.7, 0.7)
    # argmax of clipped logits has ties.
    self._Check(
      layer(x, _Batch()), logits, label_smoothing, paddings=np.zeros([2, 4])
    )

  def testTiedWeight(self):
    layer = _Layer(tied_weight='table')
    self.assertEqual(list(layer.VariableSpecs()), ['b'])
    self.assertEqual(layer.UsedWeights(), ('table',))
    table = gradient_check.Draw([_VOCABULARY, _DIM], 2)
    x = _Inputs()
    with fprop_context.FPropContext(
      do_eval=True, shared_weights={'table': table}
    ):
      result = layer(x, _Batch())
    self._Check(result, x.numpy() @ table.numpy().T, 0.0, np.zeros([2, 4]))

  def testBatchFields(self):
    self.assertEqual(_Layer().BATCH_FIELDS, ('labels',))
    layer = _Layer(labels_field='target', paddings_field='target_paddings')
    self.assertEqual(layer.BATCH_FIELDS, ('target', 'target_paddings'))
    batch = NestedMap(
      target=tf.constant(_LABELS),
      target_paddings=tf.constant(_PADDINGS, tf.float64),
    )
    self._Check(
      layer(_Inputs(), batch), _Inputs().numpy() @ layer.vars.w.numpy()
    )

  def testNoTokenAtAll(self):
    batch = _Batch(paddings=tf.ones([2, 4]))
    result = _Layer(paddings_field='paddings')(_Inputs(), batch)
    self.assertEqual(float(result.loss.Mean()), 0.0)

  @parameterized.parameters(0.0, 0.1)
  def testHalfPrecision(self, label_smoothing):
    layer = _Layer(
      dtype=tf.float32,
      fprop_dtype=tf.bfloat16,
      label_smoothing=label_smoothing,
    )
    self.assertEqual(layer.VariableSpecs().w.dtype, tf.float32)
    result = layer(tf.cast(_Inputs(), tf.bfloat16), _Batch())
    expected, weight = _Expected(
      _Inputs().numpy() @ layer.vars.w.numpy(), label_smoothing, np.zeros(8)
    )
    self.assertEqual(result.loss.total.dtype, tf.float32)
    self.assertEqual(float(result.loss.weight), weight)
    self.assertAllClose(result.loss.total, expected['loss'], 0.02)

  @parameterized.product(label_smoothing=[0.0, 0.1], logits_abs_max=[None, 1.0])
  def testGradients(self, label_smoothing, logits_abs_max):
    layer = _Layer(
      label_smoothing=label_smoothing,
      logits_abs_max=logits_abs_max,
      paddings_field='paddings',
    )
    gradient_check.AssertGradients(self, _Loss(layer), 2.0 * _Inputs())

  @parameterized.parameters(0.0, 0.1)
  def testUnknownLabels(self, label_smoothing):
    layer = _Layer(label_smoothing=label_smoothing)
    batch = NestedMap(labels=tf.fill([2, 4], _VOCABULARY))
    with tf.device('/cpu:0'):
      with self.assertRaises(tf.errors.InvalidArgumentError):
        layer(_Inputs(), batch)

  @parameterized.parameters(
    ({'dim': 0}, 'dim=0 must be 1 or more'),
    ({'vocab_size': 0}, 'vocab_size=0 must be 1 or more'),
    ({'label_smoothing': 1.0}, r'label_smoothing=1.0 must be in \[0, 1\)'),
    ({'logits_abs_max': 0.0}, 'logits_abs_max=0.0 must be above 0'),
    ({'labels_field': ''}, 'its param "labels_field" is empty'),
  )
  def testWrongParams(self, params, message):
    with self.assertRaisesRegex(ValueError, f'softmax: {message}'):
      _Layer(**params)

  def testWrongWidths(self):
    with self.assertRaisesRegex(ValueError, 'end in 4, but dim=3'):
      _Layer()(gradient_check.Draw([2, 4, 4], 1), _Batch())
    shared = {'table': tf.zeros([_VOCABULARY, 9], tf.float64)}
    with fprop_context.FPropContext(do_eval=True, shared_weights=shared):
      with self.assertRaisesRegex(
        ValueError, r"tied_weight='table' is \(5, 9\), not \(5, 3\)"
      ):
        _Layer(tied_weight='table')(_Inputs(), _Batch())


if __name__ == '__main__':
  tf.test.main()
