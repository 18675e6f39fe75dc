"""A Transformer language model in a pipeline equals the plain one.

Embedding, blocks with dropout, a norm and a softmax that is tied to the
embedding, on padded and packed sentences.
"""

import functools

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.gpipe import gpipe, placement
from lingvo_gpipe.layers import embedding, norm, softmax, transformer

NestedMap = nested_map.NestedMap
_VOCABULARY, _DIM, _TIME, _BATCH, _BLOCKS = 11, 4, 5, 8, 4
_STEP = 3


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Cells(final_norm):
  blocks = [
    transformer.TransformerBlock.Params().Set(
      name=f'block_{i}',
      dim=_DIM,
      hidden_dim=6,
      num_heads=2,
      causal=True,
      residual_keep_prob=0.9,
      attention_keep_prob=0.9,
      hidden_keep_prob=0.9,
    )
    for i in range(_BLOCKS)
  ]
  if final_norm:
    blocks.append(norm.LayerNorm.Params().Set(name='norm', dim=_DIM))
  return [
    embedding.TokenEmbedding.Params().Set(
      name='embedding',
      vocab_size=_VOCABULARY,
      dim=_DIM,
      keep_prob=0.9,
      shared_name='table',
    ),
    *blocks,
    softmax.SoftmaxLoss.Params().Set(
      name='softmax',
      dim=_DIM,
      vocab_size=_VOCABULARY,
      tied_weight='table',
      label_smoothing=0.1,
      paddings_field='paddings',
    ),
  ]


def _Batch(packed):
  """Sentences of 2 to 5 tokens; packed ones with their fields."""
  ids = tf.reshape(tf.range(_BATCH * _TIME) * 7 % _VOCABULARY, [_BATCH, -1])
  lengths = 2 + tf.range(_BATCH) % 4
  paddings = 1.0 - tf.sequence_mask(lengths, _TIME, tf.float64)
  inputs = ids
  if packed:
    inputs = NestedMap(
      ids=ids,
      positions=tf.tile([[0, 1, 0, 1, 2]], [_BATCH, 1]),
      segment_ids=tf.tile([[1, 1, 2, 2, 2]], [_BATCH, 1]),
      paddings=paddings,
    )
  labels = (ids + 3) % _VOCABULARY
  return NestedMap(inputs=inputs, labels=labels, paddings=paddings)


def _Net(packed, **kwargs):
  net = gpipe.GPipe.Params().Set(
    name='net', cells=_Cells(final_norm=not packed), dtype=tf.float64
  )
  net = net.Set(**kwargs).Instantiate()
  net.Plan(_Batch(packed))
  net.InstantiateVariables()
  return net


@functools.cache
def _Plain(packed, num_micro_batches):
  """Loss, log_pplx and gradients of the cells one by one."""
  net = _Net(packed, num_micro_batches=num_micro_batches)
  variables = tf.nest.flatten(net.vars)
  size = _BATCH // num_micro_batches
  total = weight = log_pplx = 0.0
  with tf.GradientTape() as tape:
    theta = net.theta.cells
    for i in range(num_micro_batches):
      rows = slice(i * size, (i + 1) * size)
      batch = tf.nest.map_structure(lambda x: x[rows], _Batch(packed))  # noqa: B023
      x = batch.inputs
      with fprop_context.FPropContext(
        do_eval=False,
        global_step=_STEP,
        micro_batch=i,
        shared_weights={'table': theta[0].w},
      ):
        for cell, own in zip(net.cells, theta, strict=True):
          x = cell.FProp(own, x, *([batch] if cell.BATCH_FIELDS else []))
      total += x.loss.total
      weight += x.loss.weight
      log_pplx += x.log_pplx.total
    loss = total / weight
  grads = tape.gradient(loss, variables)
  grads = [tf.convert_to_tensor(g) for g in grads]
  return loss, log_pplx / weight, grads


class TransformerPipelineTest(parameterized.TestCase, tf.test.TestCase):
  def _Check(self, packed, num_micro_batches, **kwargs):
    net = _Net(packed, num_micro_batches=num_micro_batches, **kwargs)
    result = tf.function(net.ComputeGradients, autograph=False)(
      _Batch(packed), tf.constant(_STEP, tf.int64)
    )
    loss, log_pplx, grads = _Plain(packed, num_micro_batches)
    close = {'rtol': 1e-9, 'atol': 1e-12}
    self.assertAllClose(result.loss, loss, **close)
    self.assertAllClose(result.metrics.log_pplx.Mean(), log_pplx, **close)
    self.assertAllClose(tf.nest.flatten(result.grads), grads, **close)

  @parameterized.product(
    num_partitions=[1, 2],
    num_micro_batches=[2, 4],
    rematerialize=['none', 'partition', 'cell'],
  )
  def testEqualsThePlainModel(self, **kwargs):
    self._Check(packed=False, **kwargs)

  @parameterized.parameters('none', 'cell')
  def testPackedSentences(self, rematerialize):
    self._Check(
      packed=True,
      num_partitions=2,
      num_micro_batches=2,
      rematerialize=rematerialize,
    )

  def testHalfPrecision(self):
    net = _Net(
      packed=False,
      num_micro_batches=2,
      num_partitions=2,
      dtype=tf.float32,
      fprop_dtype=tf.bfloat16,
    )
    exact = _Net(packed=False, num_micro_batches=2)
    for variable, value in zip(
      tf.nest.flatten(net.vars), tf.nest.flatten(exact.vars), strict=True
    ):
      variable.assign(tf.cast(value, tf.float32))
    result = tf.function(net.ComputeGradients, autograph=False)(
      _Batch(packed=False), tf.constant(_STEP, tf.int64)
    )
    loss, unused_log_pplx, grads = _Plain(False, 2)
    self.assertEqual(result.loss.dtype, tf.float32)
    self.assertAllClose(result.loss, loss, 0.05)
    flat = tf.nest.flatten(result.grads)
    for gradient, expected in zip(flat, grads, strict=True):
      self.assertEqual(gradient.dtype, tf.float32)
      self.assertAllClose(gradient, expected, 0.2, 0.1)


if __name__ == '__main__':
  tf.test.main()
