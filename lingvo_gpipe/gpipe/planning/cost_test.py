"""Tests for cost: cells whose counts are known by hand."""

from __future__ import annotations

import resource
import time

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import base_layer, metrics, nested_map
from lingvo_gpipe.gpipe.planning import cost

NestedMap = nested_map.NestedMap
WeightParams = base_layer.WeightParams
_FLOAT = 4  # bytes


class _Dense(base_layer.BaseLayer):
  """x w, [batch, input_dim] -> [batch, output_dim]."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('input_dim', 3, 'Width of the input.')
    p.Define('output_dim', 5, 'Width of the output.')
    return p

  def __init__(self, params):
    super().__init__(params)
    p = self.params
    self.CreateVariable('w', WeightParams((p.input_dim, p.output_dim)))

  def FProp(self, theta, inputs):
    return tf.matmul(inputs, theta.w)


class _Relu(_Dense):
  """Two layers with a relu between them, and state that is not trained."""

  def __init__(self, params):
    super().__init__(params)
    p = self.params
    self.CreateVariable('v', WeightParams((p.output_dim, p.input_dim)))
    self.CreateVariable('mean', WeightParams((7,)), trainable=False)

  def FProp(self, theta, inputs):
    hidden = tf.nn.relu(tf.matmul(inputs, theta.w))
    return tf.matmul(tf.reshape(hidden, [-1, self.params.output_dim]), theta.v)


class _Dropout(_Dense):
  """Zeroes half of x w."""

  def FProp(self, theta, inputs):
    y = tf.matmul(inputs, theta.w)
    if self.do_eval:
      return y
    return y * tf.cast(
      tf.random.stateless_uniform(y.shape, self.StatelessSeed()) < 0.5, y.dtype
    )


class _Embedding(_Dense):
  """Integers in, a nest out."""

  def FProp(self, theta, inputs):
    x = tf.gather(theta.w, inputs.ids)
    return NestedMap(x=x, ids=inputs.ids, same=x, nothing=None, number=3)


class _Head(_Dense):
  """A loss from the batch's labels; an auxiliary loss; an integer output."""

  BATCH_FIELDS = ('labels',)

  def FProp(self, theta, inputs, batch):
    logits = tf.matmul(inputs.x, theta.w)
    self.AddAuxLoss('size', tf.reduce_sum(logits))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(batch.labels, logits)
    return NestedMap(
      loss=metrics.Weighted(loss, tf.ones_like(loss)),
      best=tf.argmax(logits, -1),
    )


class _Known(_Dense):
  """Says itself what it costs."""

  def Cost(self, inputs_spec):
    return {'forward_flops': 7 * inputs_spec.shape[0], 'activation_bytes': 11}


class _Misnamed(_Dense):
  def Cost(self, inputs_spec):
    return {'flops': 7}


class _Dynamic(_Dense):
  """Its output's size depends on values."""

  def FProp(self, theta, inputs):
    return tf.boolean_mask(inputs, inputs[:, 0] > 0)


_traces = []


class _Spy(_Dense):
  """Records how often it is traced."""

  def FProp(self, theta, inputs):
    _traces.append(self.params.name)
    return super().FProp(theta, inputs)


def _Make(cls, name='cell', **kwargs):
  return cls.Params().Set(name=name, **kwargs).Instantiate()


def _Spec(*shape, dtype=tf.float32):
  return tf.TensorSpec(shape, dtype)


class CountCellTest(absltest.TestCase):
  def testDense(self):
    counted, output_spec = cost.CountCell(_Make(_Dense), _Spec(2, 3), index=1)
    product = 2 * 2 * 3 * 5
    self.assertEqual(
      counted,
      cost.CellCost(
        name='cell',
        params=15,
        param_bytes=15 * _FLOAT,
        gradient_bytes=15 * _FLOAT,
        forward_flops=product,
        backward_flops=2 * product,
        activation_bytes=2 * 3 * _FLOAT,
        input_bytes=2 * 3 * _FLOAT,
        output_bytes=2 * 5 * _FLOAT,
        output_spec=None,
      ),
    )
    self.assertEqual(output_spec, _Spec(2, 5))
    self.assertEqual(counted.output_spec, output_spec)

  def testFirstCellHasNoInputGradient(self):
    counted, _ = cost.CountCell(_Make(_Dense), _Spec(2, 3))
    self.assertEqual(counted.backward_flops, counted.forward_flops)

  def testActivationsAreCountedOnce(self):
    # The inputs and the relu's output, though that is read by two gradients and
    # one of them reads it reshaped. The untrained variable counts its bytes.
    counted, _ = cost.CountCell(_Make(_Relu), _Spec(2, 3), index=1)
    self.assertEqual(counted.activation_bytes, (2 * 3 + 2 * 5) * _FLOAT)
    self.assertEqual(counted.params, 30)
    self.assertEqual(counted.param_bytes, (30 + 7) * _FLOAT)

  def testTrainingModeAndMask(self):
    # The mask of dropout is an activation: it is new for each micro-batch.
    counted, _ = cost.CountCell(_Make(_Dropout), _Spec(2, 3), index=1)
    self.assertEqual(counted.activation_bytes, (2 * 3 + 2 * 5) * _FLOAT)

  def testComputationInBfloat16(self):
    cell = _Make(_Dense, fprop_dtype=tf.bfloat16)
    counted, output_spec = cost.CountCell(
      cell, _Spec(2, 3, dtype=tf.bfloat16), index=1
    )
    self.assertEqual(output_spec.dtype, tf.bfloat16)
    self.assertEqual(counted.output_bytes, 2 * 5 * 2)
    self.assertEqual(counted.param_bytes, 15 * _FLOAT)
    # The cast weights are no activation.
    self.assertEqual(counted.activation_bytes, 2 * 3 * 2)

  def testNestsNoneIntegersAndBatchFields(self):
    cells = [
      _Make(_Embedding, 'embedding', input_dim=100),
      _Make(_Head, 'head', input_dim=5, output_dim=4),
    ]
    inputs = NestedMap(ids=_Spec(2, dtype=tf.int32), nothing=None)
    batch = NestedMap(labels=_Spec(2, dtype=tf.int32))
    embedding, head = cost.CountCells(cells, inputs, batch)
    self.assertEqual(embedding.params, 500)
    self.assertEqual(embedding.input_bytes, 2 * 4)
    # x crosses once, though it is there twice; ids and the number, too.
    self.assertEqual(embedding.output_bytes, (2 * 5 + 2 + 1) * 4)
    self.assertIsNone(embedding.output_spec.nothing)
    self.assertEqual(embedding.output_spec.number, _Spec(dtype=tf.int32))
    product = 2 * 2 * 5 * 4
    self.assertBetween(head.forward_flops, product, product + 50)
    self.assertBetween(head.backward_flops, 2 * product, 2 * product + 50)
    self.assertEqual(head.output_spec.best, _Spec(2, dtype=tf.int64))
    self.assertEqual(head.output_spec.loss.total, _Spec())

  def testOverride(self):
    plain, _ = cost.CountCell(_Make(_Dense), _Spec(2, 3))
    counted, _ = cost.CountCell(_Make(_Known), _Spec(2, 3))
    self.assertEqual(counted.forward_flops, 14)
    self.assertEqual(counted.activation_bytes, 11)
    self.assertEqual(counted.backward_flops, plain.backward_flops)
    with self.assertRaisesRegex(
      ValueError, 'Cost returns flops; it may return forward_flops'
    ):
      cost.CountCell(_Make(_Misnamed), _Spec(2, 3))


class CountCellsTest(absltest.TestCase):
  def testChain(self):
    cells = [
      _Make(_Dense, 'a', input_dim=3, output_dim=4),
      _Make(_Dense, 'b', input_dim=4, output_dim=6),
    ]
    costs = cost.CountCells(cells, _Spec(2, 3))
    self.assertEqual([c.name for c in costs], ['a', 'b'])
    self.assertEqual([c.params for c in costs], [12, 24])
    self.assertEqual(costs[1].input_bytes, costs[0].output_bytes)

  def testEqualCellsAreTracedOnce(self):
    def _Traced(*cells):
      _traces.clear()
      return [c.name for c in cost.CountCells(cells, _Spec(2, 3))], len(_traces)

    def _Cell(name, **kwargs):
      return _Make(_Spy, name, output_dim=3, **kwargs)

    # Cell 0 needs no input gradient, so it is another than its equals.
    names, traces = _Traced(*[_Cell(f'cell_{i}') for i in range(9)])
    self.assertEqual(names, [f'cell_{i}' for i in range(9)])
    self.assertEqual(traces, 2)
    # Other params, or other inputs: traced again.
    _, traces = _Traced(_Cell('a'), _Cell('b'), _Cell('c', random_seed=3))
    self.assertEqual(traces, 3)
    wide = _Make(_Spy, 'wide', output_dim=5)
    back = _Make(_Spy, 'back', input_dim=5, output_dim=3)
    _, traces = _Traced(_Cell('a'), wide, back, _Cell('b'), _Cell('c'))
    self.assertEqual(traces, 4)

  def testSixBillionParametersTakeSecondsAndNoMemory(self):
    dim = 6848
    cells = [
      _Make(_Dense, f'cell_{i}', input_dim=dim, output_dim=dim)
      for i in range(128)
    ]
    start = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    costs = cost.CountCells(cells, _Spec(32, dim))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    self.assertGreater(sum(c.params for c in costs), 6e9)
    self.assertLess(after - before, 100 * 1024)  # KiB
    self.assertLess(time.process_time() - start, 10)

  def testMismatchNamesTheCellsAndKeepsTheError(self):
    cells = [
      _Make(_Dense, 'a', input_dim=3, output_dim=4),
      _Make(_Dense, 'b', input_dim=5, output_dim=6),
    ]
    with self.assertRaisesRegex(
      ValueError,
      r'cell 1 \(b, _Dense\) fails on what cell 0 \(a\) returns, .*\(2, 4\)',
    ) as caught:
      cost.CountCells(cells, _Spec(2, 3))
    self.assertIn('must be equal', str(caught.exception.__cause__))
    self.assertIn(str(caught.exception.__cause__), str(caught.exception))
    self.assertLen(caught.exception.__notes__, 1)

  def testMissingBatchField(self):
    with self.assertRaisesRegex(
      ValueError,
      r'cell 0 \(cell, _Head\) .*the inputs of the pipeline.*batch fields '
      r"labels \(BATCH_FIELDS\), but the batch has \['x'\]",
    ):
      cost.CountCells(
        [_Make(_Head)], NestedMap(x=_Spec(2, 3)), NestedMap(x=_Spec(2, 3))
      )

  def testOutputsOfUnknownShape(self):
    with self.assertRaisesRegex(ValueError, r'shape \(None, 3\) of an output'):
      cost.CountCells([_Make(_Dynamic)], _Spec(2, 3))


if __name__ == '__main__':
  absltest.main()
