"""Tests of transformer_lm, pipelined and plain."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, placement, plain_model
from tasks.lm import transformer_lm

NestedMap = nested_map.NestedMap
_TINY = transformer_lm.TransformerLm(
  num_layers=2, dim=8, hidden_dim=12, num_heads=2, vocab_size=11
)
_DROPOUTS = {
  'keep_prob': 0.8,
  'attention_keep_prob': 0.7,
  'hidden_keep_prob': 0.6,
}
_TIME = 5


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Batch():
  rng = np.random.RandomState(0)
  ids = tf.constant(rng.randint(11, size=[8, _TIME + 1]), tf.int32)
  return NestedMap(
    inputs=ids[:, :-1],
    labels=ids[:, 1:],
    paddings=tf.constant(rng.rand(8, _TIME) < 0.2, tf.float32),
    weights=tf.constant([1, 1, 1, 0, 1, 1, 1, 1], tf.float32),
  )


def _Net(description, **kwargs):
  net = (
    gpipe.GPipe.Params()
    .Set(name='net', cells=description.Cells(), dtype=tf.float64, **kwargs)
    .Instantiate()
  )
  net.Plan(_Batch())
  net.InstantiateVariables()
  return net


def _Flat(grads):
  return [tf.convert_to_tensor(g) for g in tf.nest.flatten(grads)]


@functools.cache
def _Plain(num_micro_batches):
  net = _Net(
    dataclasses.replace(_TINY, **_DROPOUTS),
    num_micro_batches=num_micro_batches,
  )
  return plain_model.ComputeGradients(net.cells, _Batch(), num_micro_batches, 3)


class TransformerLmTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.product(num_partitions=(1, 2), num_micro_batches=(1, 4))
  def testPipelineEqualsPlainWithAllDropouts(
    self, num_partitions, num_micro_batches
  ):
    net = _Net(
      dataclasses.replace(_TINY, **_DROPOUTS),
      num_partitions=num_partitions,
      num_micro_batches=num_micro_batches,
    )
    step = tf.function(net.ComputeGradients, autograph=False)
    result = step(_Batch(), tf.constant(3, tf.int64))
    plain = _Plain(num_micro_batches)
    self.assertAllClose(result.loss, plain.loss, rtol=1e-12)
    self.assertAllClose(
      _Flat(result.grads), _Flat(plain.grads), rtol=1e-9, atol=1e-11
    )

  def testTiedGradientsAreTheSameForEveryK(self):
    grads = []
    for k in (1, 2):
      net = _Net(
        dataclasses.replace(_TINY, tied=True),
        num_partitions=k,
        num_micro_batches=2,
      )
      result = net.ComputeGradients(_Batch(), 0)
      grads.append(_Flat(result.grads))
      self.assertNotIn('w', net.vars.cells[-1].softmax)
    self.assertAllClose(*grads, rtol=1e-9, atol=1e-11)

  @parameterized.parameters(*_DROPOUTS)
  def testEachDropoutActs(self, name):
    net = _Net(dataclasses.replace(_TINY, **{name: 0.5}), num_micro_batches=1)
    losses = [float(net.ComputeGradients(_Batch(), s).loss) for s in (1, 2)]
    self.assertNotAlmostEqual(*losses, places=4)

  def testNothingSeesLaterTokens(self):
    net = _Net(_TINY, num_micro_batches=1)
    batch = _Batch()
    batch.paddings = tf.constant([[0, 0, 0, 1, 1]] * 8, tf.float32)
    loss = net.FProp(net.theta, batch).loss.Mean()
    for place, same in ((2, False), (3, True), (4, True)):
      other = NestedMap(batch)
      here = tf.range(_TIME) == place
      other.inputs = tf.where(here, (batch.inputs + 1) % 11, batch.inputs)
      changed = net.FProp(net.theta, other).loss.Mean()
      self.assertEqual(abs(float(changed - loss)) < 1e-12, same)

  def testMeasuresForDepth(self):
    scaled = _Net(
      dataclasses.replace(
        _TINY,
        scale_feed_forward=True,
        logits_abs_max=0.01,
        output_init_scale=0.5,
      ),
      num_micro_batches=1,
    )
    plain = _Net(_TINY, num_micro_batches=1)
    a, b = scaled.vars.cells[2], plain.vars.cells[2]
    close = {'rtol': 1e-12}
    self.assertAllClose(a.feed_forward.hidden.w * 2, b.feed_forward.hidden.w)
    self.assertAllClose(
      a.feed_forward.output.w * 4, b.feed_forward.output.w, **close
    )
    self.assertAllClose(a.attention.post.w * 2, b.attention.post.w, **close)
    self.assertAllClose(a.attention.qkv.w, b.attention.qkv.w, **close)
    # Logits that are nearly equal: the loss of a uniform guess.
    loss = scaled.FProp(scaled.theta, _Batch()).loss.Mean()
    self.assertAllClose(loss, np.log(11), atol=0.02)
    self.assertNotAllClose(
      plain.FProp(plain.theta, _Batch()).loss.Mean(), loss, atol=0.02
    )

  def testNoLayers(self):
    with self.assertRaisesRegex(ValueError, 'num_layers=0 must be 1 or more'):
      dataclasses.replace(_TINY, num_layers=0)


if __name__ == '__main__':
  tf.test.main()
