"""Transformers on batches of several lengths, and that do not divide."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.gpipe import gpipe, placement
from lingvo_gpipe.layers import embedding, softmax, transformer

NestedMap = nested_map.NestedMap
_VOCABULARY, _DIM = 11, 4


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Batch(rows, time):
  ids = tf.reshape(tf.range(rows * time) * 7 % _VOCABULARY, [rows, time])
  return NestedMap(inputs=ids, labels=(ids + 3) % _VOCABULARY)


def _Net(batch, **kwargs):
  cells = [
    embedding.TokenEmbedding.Params().Set(
      name='embedding', vocab_size=_VOCABULARY, dim=_DIM
    ),
    *(
      transformer.TransformerBlock.Params().Set(
        name=f'block_{i}', dim=_DIM, hidden_dim=6, num_heads=2, causal=True
      )
      for i in range(2)
    ),
    softmax.SoftmaxLoss.Params().Set(
      name='softmax', dim=_DIM, vocab_size=_VOCABULARY
    ),
  ]
  net = (
    gpipe.GPipe.Params()
    .Set(name='net', cells=cells, num_partitions=2, dtype=tf.float64, **kwargs)
    .Instantiate()
  )
  net.Plan(batch)
  net.InstantiateVariables()
  return net


def _Plain(net, batch):
  """Loss and gradients of all rows at once."""
  with tf.GradientTape() as tape:
    x = batch.inputs
    with fprop_context.FPropContext(do_eval=False):
      for cell, theta in zip(net.cells, net.theta.cells, strict=True):
        x = cell.FProp(theta, x, *([batch] if cell.BATCH_FIELDS else []))
    loss = x.loss.Mean()
  grads = tape.gradient(loss, tf.nest.flatten(net.vars))
  return loss, [tf.convert_to_tensor(g) for g in grads]


class TransformerBatchesTest(parameterized.TestCase, tf.test.TestCase):
  def _Check(self, net, batch, step=None):
    result = (step or net.ComputeGradients)(batch, tf.constant(0, tf.int64))
    loss, grads = _Plain(net, batch)
    self.assertAllClose(result.loss, loss, rtol=1e-12)
    self.assertAllClose(
      tf.nest.flatten(result.grads), grads, rtol=1e-9, atol=1e-12
    )

  def testBucketsOfLengthsAreTracedOnceEach(self):
    net = _Net(_Batch(6, 8), num_micro_batches=3)
    step = tf.function(net.ComputeGradients, autograph=False)
    for time in (8, 5, 3, 5, 8, 3):
      self._Check(net, _Batch(6, time), step)
    self.assertEqual(step.experimental_get_tracing_count(), 3)

  def testTooManyLengths(self):
    net = _Net(_Batch(6, 8), num_micro_batches=3, max_batch_shapes=2)
    for time in (8, 5, 8):
      net.ComputeGradients(_Batch(6, time), 0)
    with self.assertRaisesRegex(
      ValueError, 'max_batch_shapes=2 shapes.*bucket'
    ):
      net.ComputeGradients(_Batch(6, 3), 0)

  @parameterized.parameters((7, 3), (5, 4))
  def testPaddedRowsCountForNothing(self, rows, num_micro_batches):
    batch = _Batch(rows, 5)
    net = _Net(batch, num_micro_batches=num_micro_batches, pad_batches=True)
    self._Check(net, batch)


if __name__ == '__main__':
  tf.test.main()
