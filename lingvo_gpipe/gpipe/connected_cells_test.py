"""Cells that are connected past their neighbours, in a pipeline and without.

Skip connections, shared weights, metrics and embeddings: loss and gradients of
every cut, schedule and policy equal those of the same cells one by one.
"""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, fprop_context, metrics, nested_map
from lingvo_gpipe.gpipe import gpipe, placement

NestedMap = nested_map.NestedMap
_VOCABULARY, _DIM, _LENGTH, _BATCH = 11, 4, 3, 12


def setUpModule():
  placement.ConfigureLogicalCpus(4)


class _Embedding(base_layer.BaseLayer):
  """ids -> vectors; lends its table, stashes the vectors and the ids."""

  def __init__(self, params):
    super().__init__(params)
    self.CreateVariable('w', base_layer.WeightParams((_VOCABULARY, _DIM)))

  def Stashes(self):
    return ('vectors', 'ids')

  def SharedWeights(self):
    return {'table': 'w'}

  def FProp(self, theta, ids):
    vectors = tf.gather(theta.w, ids)
    self.Stash('vectors', vectors)
    self.Stash('ids', NestedMap(ids=ids, nothing=None))
    return vectors


class _Dense(base_layer.BaseLayer):
  """tanh(x w), with a metric and an auxiliary loss."""

  def __init__(self, params):
    super().__init__(params)
    self.CreateVariable('w', base_layer.WeightParams((_DIM, _DIM)))

  def FProp(self, theta, x):
    y = tf.tanh(x @ theta.w)
    self.AddMetric('square', tf.reduce_sum(y * y), y.shape.num_elements())
    self.AddAuxLoss('size', 0.1 * tf.reduce_sum(y * y))
    return y


class _Middle(_Dense):
  """Uses the table, adds the vectors of the first cell."""

  def Pops(self):
    return ('vectors',)

  def UsedWeights(self):
    return ('table',)

  def FProp(self, theta, x):
    mean = tf.reduce_mean(self.SharedWeight('table'), 0)
    return super().FProp(theta, x + self.Pop('vectors')) + mean


class _Softmax(base_layer.BaseLayer):
  """Logits by the table of the first cell."""

  BATCH_FIELDS = ('labels', 'weights')

  def Pops(self):
    return ('ids',)

  def UsedWeights(self):
    return ('table',)

  def FProp(self, theta, x, batch):
    skipped = self.Pop('ids')
    assert skipped.nothing is None
    x *= 1.0 + tf.cast(skipped.ids > 5, x.dtype)[..., tf.newaxis]
    logits = tf.einsum('btd,vd->btv', x, self.SharedWeight('table'))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      batch.labels, logits
    )
    return NestedMap(loss=metrics.Weighted(losses, batch.weights))


def _Cells():
  return [
    _Embedding.Params().Set(name='embedding'),
    _Dense.Params().Set(name='dense_1'),
    _Dense.Params().Set(name='dense_2'),
    _Middle.Params().Set(name='middle'),
    _Dense.Params().Set(name='dense_3'),
    _Softmax.Params().Set(name='softmax'),
  ]


def _Batch():
  ids = tf.reshape(tf.range(_BATCH * _LENGTH) * 7 % _VOCABULARY, [_BATCH, -1])
  return NestedMap(
    inputs=ids,
    labels=(ids + 3) % _VOCABULARY,
    weights=tf.cast(ids % 3, tf.float64),
  )


def _Net(**kwargs):
  net = gpipe.GPipe.Params().Set(
    name='net', cells=_Cells(), dtype=tf.float64, **kwargs
  )
  net = net.Instantiate()
  net.Plan(_Batch())
  net.InstantiateVariables()
  return net


def _Plain(net, batch):
  """Loss and gradients of the cells one by one on the whole mini-batch."""
  variables = tf.nest.flatten(net.vars)
  with tf.GradientTape() as tape:
    theta = net.theta.cells
    context = fprop_context.FPropContext(
      do_eval=False, shared_weights={'table': theta[0].w}
    )
    x = batch.inputs
    with context:
      for cell, own in zip(net.cells, theta, strict=True):
        x = cell.FProp(own, x, *([batch] if cell.BATCH_FIELDS else []))
    loss = (x.loss.total + sum(context.aux_losses.values())) / x.loss.weight
  grads = tape.gradient(loss, variables)
  return loss, [tf.convert_to_tensor(g) for g in grads], context.metrics


class ConnectedCellsTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(
    {'num_partitions': 1},
    {'num_partitions': 1, 'rematerialize': 'cell'},
    {'splits': [2, 2, 2], 'rematerialize': 'none'},
    {'splits': [1, 3, 2], 'rematerialize': 'cell', 'schedule': 'gpipe'},
    {'splits': [1, 1, 1, 3], 'rematerialize': 'partition'},
    {
      'splits': [1, 2, 2, 1],
      'rematerialize': ['none', 'cell', 'partition', 'none'],
      'schedule': 'eager_1f1b',
    },
    {
      'splits': [1, 2, 2, 1],
      'num_chunks': 2,
      'schedule': 'interleaved',
      'rematerialize': 'none',
    },
    {
      'splits': [1, 1, 1, 1, 1, 1],
      'num_chunks': 3,
      'schedule': 'interleaved',
      'rematerialize': 'partition',
    },
  )
  def testEqualsThePlainCells(self, **kwargs):
    batch = _Batch()
    net = _Net(num_micro_batches=4, **kwargs)
    loss, grads, reported = _Plain(net, batch)
    result = tf.function(net.ComputeGradients, autograph=False)(
      batch, tf.constant(0, tf.int64)
    )
    close = {'rtol': 1e-10, 'atol': 1e-12}
    self.assertAllClose(result.loss, loss, **close)
    self.assertAllClose(tf.nest.flatten(result.grads), grads, **close)
    self.assertEqual(set(result.cell_metrics), set(reported))
    for name, value in reported.items():
      self.assertAllClose(result.cell_metrics[name], value, **close)
    # The table is one variable, on the device of its own cell.
    self.assertLen(tf.nest.flatten(net.vars), 5)

  def testEvaluation(self):
    batch = _Batch()
    net = _Net(splits=[1, 2, 2, 1], num_micro_batches=4)
    outputs = tf.function(net.FProp, autograph=False)(net.theta, batch)
    with fprop_context.FPropContext(
      do_eval=True, shared_weights={'table': net.theta.cells[0].w}
    ):
      x = batch.inputs
      for cell in net.cells:
        x = cell(x, *([batch] if cell.BATCH_FIELDS else []))
    self.assertAllClose(outputs.loss, x.loss, rtol=1e-10)

  def testFaultsAreFoundBeforeAnythingIsTraced(self):
    with self.assertRaisesRegex(ValueError, "net/middle pops 'vectors', which"):
      gpipe.GPipe.Params().Set(name='net', cells=_Cells()[1:4]).Instantiate()
    cells = [*_Cells()[:2], _Embedding.Params().Set(name='again')]
    with self.assertRaisesRegex(ValueError, 'skip connections.*vectors.*ids'):
      gpipe.GPipe.Params().Set(name='net', cells=cells).Instantiate()

    class _Borrower(_Dense):
      def UsedWeights(self):
        return ('nowhere',)

    cells = [_Borrower.Params().Set(name='borrower'), *_Cells()]
    with self.assertRaisesRegex(
      ValueError, "net/borrower uses 'nowhere', which no cell lends"
    ):
      gpipe.GPipe.Params().Set(name='net', cells=cells).Instantiate()

  def testUndeclaredNamesAreRefused(self):
    class _Sneaky(_Dense):
      def FProp(self, theta, x):
        self.Stash('vectors', x)
        return x

    cells = _Cells()
    cells[1] = _Sneaky.Params().Set(name='sneaky')
    with self.assertRaisesRegex(
      ValueError, "net/sneaky stashes 'vectors', which its method Stashes"
    ):
      net = gpipe.GPipe.Params().Set(name='net', cells=cells).Instantiate()
      net.Plan(_Batch())


if __name__ == '__main__':
  tf.test.main()
