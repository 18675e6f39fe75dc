"""Tests of encoder-decoder Transformers, pipelined and plain."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.gpipe import gpipe, placement, plain_model
from tasks.mt import test_sentences, transformer

NestedMap = nested_map.NestedMap
_VOCABULARY = test_sentences.VOCABULARY
_TINY = transformer.Transformer(
  num_layers=2,
  hidden_dim=12,
  num_heads=2,
  vocab_size=_VOCABULARY,
  dim=8,
  head_dim=6,
)
_DROPOUTS = {
  'keep_prob': 0.8,
  'attention_keep_prob': 0.7,
  'hidden_keep_prob': 0.6,
}


def setUpModule():
  placement.ConfigureLogicalCpus(4)


def _Net(description, batch, **kwargs):
  net = gpipe.GPipe.Params().Set(
    name='net', cells=description.Cells(), dtype=tf.float64, **kwargs
  )
  net = net.Instantiate()
  net.Plan(batch)
  net.InstantiateVariables()
  return net


def _Flat(grads):
  return [tf.convert_to_tensor(g) for g in tf.nest.flatten(grads)]


class TransformerTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(
    (1, 2, 'embeddings'),
    (1, 4, 'all'),
    (2, 2, 'none'),
    (2, 4, 'embeddings'),
    (4, 2, 'all'),
    (4, 4, 'embeddings'),
  )
  def testPipelineEqualsPlainWithAllDropouts(
    self, num_partitions, num_micro_batches, tied
  ):
    batch = test_sentences.Batch()
    description = dataclasses.replace(_TINY, tied=tied, **_DROPOUTS)
    net = _Net(
      description,
      batch,
      num_partitions=num_partitions,
      num_micro_batches=num_micro_batches,
      rematerialize='cell' if num_partitions == 2 else 'partition',
    )
    step = tf.function(net.ComputeGradients, autograph=False)
    result = step(batch, tf.constant(3, tf.int64))
    with _SharedByAll(net.cells[0].vars.w):
      plain = plain_model.ComputeGradients(
        net.cells, batch, num_micro_batches, 3
      )
    self.assertAllClose(result.loss, plain.loss, rtol=1e-12)
    self.assertAllClose(
      _Flat(result.grads), _Flat(plain.grads), rtol=1e-9, atol=1e-11
    )

  @parameterized.parameters(*_DROPOUTS)
  def testEachDropoutActs(self, name):
    batch = test_sentences.Batch()
    losses = []
    for value in (1.0, 0.5):
      net = _Net(
        dataclasses.replace(
          _TINY, tied='none', **{**dict.fromkeys(_DROPOUTS, 1.0), name: value}
        ),
        batch,
        num_partitions=2,
        num_micro_batches=2,
      )
      losses.append(
        [float(net.ComputeGradients(batch, step).loss) for step in (1, 2)]
      )
    without, with_dropout = losses
    self.assertEqual(without[0], without[1])
    self.assertNotAlmostEqual(with_dropout[0], with_dropout[1], places=4)
    self.assertNotAlmostEqual(with_dropout[0], without[0], places=4)

  def testPackedEqualsUnpacked(self):
    batch = test_sentences.Batch(rows=6)
    packed = test_sentences.Pack(batch, 3)
    results = []
    for description, b in (
      (dataclasses.replace(_TINY, keep_prob=1.0), batch),
      (dataclasses.replace(_TINY, keep_prob=1.0, packed=True), packed),
    ):
      net = _Net(description, b, num_partitions=2, num_micro_batches=3)
      results.append(net.ComputeGradients(b, 0))
    unpacked, packed = results
    self.assertAllClose(unpacked.loss, packed.loss, rtol=1e-12)
    self.assertAllClose(
      unpacked.metrics.loss.weight, packed.metrics.loss.weight
    )
    self.assertAllClose(
      _Flat(unpacked.grads), _Flat(packed.grads), rtol=1e-9, atol=1e-11
    )

  def testPaddingCountsForNothing(self):
    batch = test_sentences.Batch()
    net = _Net(
      dataclasses.replace(_TINY, keep_prob=1.0),
      batch,
      num_partitions=2,
      num_micro_batches=2,
    )
    loss = net.ComputeGradients(batch, 0).loss
    other = NestedMap(batch)
    for name, side in (
      ('inputs', 'source'),
      ('target_ids', 'target'),
      ('labels', 'target'),
    ):
      padded = tf.cast(batch[f'{side}_paddings'], tf.bool)
      other[name] = tf.where(padded, 7, batch[name])
    self.assertAllClose(net.ComputeGradients(other, 0).loss, loss, rtol=1e-12)

  def testScaledFeedForward(self):
    batch = test_sentences.Batch()
    deep = dataclasses.replace(_TINY, num_layers=4, hidden_dim=400)
    deviations = []
    for scale in (False, True):
      net = _Net(
        dataclasses.replace(deep, scale_feed_forward=scale),
        batch,
        num_micro_batches=1,
      )
      weights = {v.path: v for v in tf.nest.flatten(net.VariableSpecs())}
      values = dict(zip(weights, tf.nest.flatten(net.vars), strict=True))
      deviations.append(
        {
          path: float(tf.math.reduce_std(value))
          for path, value in values.items()
          if path.endswith('/w')
        }
      )
    plain, scaled = deviations
    for path, deviation in plain.items():
      expected = 0.25 if '/feed_forward/' in path else 1.0
      self.assertAllClose(scaled[path] / deviation, expected, rtol=1e-6)

  def testTiedNumberOfMatrices(self):
    counts = []
    for tied in transformer.TIED:
      net = gpipe.GPipe.Params().Set(
        name='net', cells=dataclasses.replace(_TINY, tied=tied).Cells()
      )
      specs = tf.nest.flatten(net.Instantiate().VariableSpecs())
      counts.append(sum(int(np.prod(s.shape)) for s in specs))
    table = _VOCABULARY * _TINY.dim
    self.assertEqual([counts[0] - c for c in counts], [0, table, 2 * table])

  def testBadDescriptions(self):
    with self.assertRaisesRegex(ValueError, "tied='some' is none of none, emb"):
      dataclasses.replace(_TINY, tied='some')
    with self.assertRaisesRegex(ValueError, 'num_layers=0 must be 1'):
      dataclasses.replace(_TINY, num_layers=0)


def _SharedByAll(table):
  """Lets the cells of the plain model see the tied table."""
  plain = fprop_context.FPropContext

  class _Context(plain):
    def __init__(self, **kwargs):
      super().__init__(**kwargs, shared_weights={'token_embedding': table})

  return tf.compat.v1.test.mock.patch.object(
    fprop_context, 'FPropContext', _Context
  )


if __name__ == '__main__':
  tf.test.main()
