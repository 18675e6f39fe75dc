"""Tests of translation through partitions."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, hyperparams, nested_map
from lingvo_gpipe.decoding import token_rules
from lingvo_gpipe.gpipe import gpipe, placement, stage
from lingvo_gpipe.layers import dense
from tasks.mt import test_sentences, transformer, translator

NestedMap = nested_map.NestedMap
_VOCABULARY = test_sentences.VOCABULARY
_RULES = token_rules.TokenRules(_VOCABULARY, 2, 3, (0, 1, 2))
_TINY = transformer.Transformer(
  num_layers=2,
  hidden_dim=12,
  num_heads=2,
  vocab_size=_VOCABULARY,
  dim=8,
  head_dim=6,
)


def setUpModule():
  placement.ConfigureLogicalCpus(4)


def _Net(num_partitions=1, cells=None, description=_TINY, num_replicas=1):
  net = gpipe.GPipe.Params().Set(
    name='net',
    cells=cells or description.Cells(),
    dtype=tf.float64,
    num_partitions=num_partitions,
    num_replicas=num_replicas,
    num_micro_batches=1,
  )
  net = net.Instantiate()
  if cells is None:
    batch = test_sentences.Batch()
    if description.packed:
      batch = test_sentences.Pack(batch, 4)
    net.Plan(batch)
    net.InstantiateVariables()
    # Untrained, all tokens are about as probable: sharpen.
    for v in tf.nest.flatten(net.vars.cells[-1]):
      v.assign(v * 6.0)
  return net


def _Translator(net, **kwargs):
  settings = hyperparams.Params()
  translator.DefineParams(settings)
  return translator.Translator(_Stages(net), settings.Set(**kwargs), _RULES)


def _Stages(net):
  if len(net.cells) > 1:
    return net.Stages()
  return [stage.Stage(0, 0, tuple(net.cells), '')]


def _Translate(net, batch, **kwargs):
  its = _Translator(net, **kwargs)
  found = tf.function(its.Translate, autograph=False)(net.theta, batch)
  return tf.nest.map_structure(lambda x: x.numpy(), found)


def _LogProbs(net, batch, ids):
  """Of a sequence for each source, as training would compute it."""
  labels = tf.constant(ids)
  first = tf.fill([ids.shape[0], 1], 2)
  end = np.cumsum(ids == 3, 1) - (ids == 3)
  fields = NestedMap(
    source_paddings=batch.source_paddings,
    target_ids=tf.concat([first, labels[:, :-1]], 1),
    labels=labels,
    target_paddings=tf.constant(end, tf.float32),
  )
  x = batch.inputs
  shared = {'token_embedding': net.theta.cells[0].w}
  with fprop_context.FPropContext(do_eval=True, shared_weights=shared):
    for cell, theta in zip(net.cells[:-1], net.theta.cells[:-1], strict=True):
      x = cell.FProp(theta, x, fields)
    logits = net.cells[-1].Logits(net.theta.cells[-1], x.x)
  log_probs = tf.nn.log_softmax(tf.reshape(logits, [*ids.shape, -1]))
  log_probs = tf.gather(log_probs, labels, batch_dims=2)
  return tf.reduce_sum(log_probs * (1.0 - end), 1).numpy(), log_probs


class TranslatorTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(1, 3)
  def testScoresAreThoseOfTraining(self, beam_size):
    net, batch = _Net(2), test_sentences.Batch()
    found = _Translate(net, batch, beam_size=beam_size)
    self.assertEqual(found.ids.shape, (8, beam_size, 19))
    self.assertGreater(len({tuple(x) for x in found.ids[:, 0]}), 4)
    for i in range(beam_size):
      expected, _ = _LogProbs(net, batch, found.ids[:, i])
      self.assertAllClose(found.log_probs[:, i], expected, rtol=1e-9)
    self.assertAllClose(
      found.scores, found.log_probs / ((5 + found.lengths) / 6) ** 0.6
    )

  @parameterized.parameters((4, 1), (2, 2))
  def testPartitionsAndReplicasChangeNothing(
    self, num_partitions, num_replicas
  ):
    batch = test_sentences.Batch()
    alone, cut = _Net(1), _Net(num_partitions, num_replicas=num_replicas)
    # With replicas, half of the weights are not where they are needed.
    self.assertLen({v.device for v in tf.nest.flatten(cut.vars)}, 4)
    for beam_size in (1, 3):
      expected = _Translate(alone, batch, beam_size=beam_size)
      found = _Translate(cut, batch, beam_size=beam_size)
      self.assertAllEqual(found.ids, expected.ids)
      self.assertAllClose(found.scores, expected.scores, rtol=1e-9)

  def testRowsDoNotDependOnEachOther(self):
    net, batch = _Net(1), test_sentences.Batch()
    together = _Translate(net, batch, beam_size=2)
    for row in range(3):
      one = NestedMap({k: v[row : row + 1] for k, v in batch.items()})
      alone = _Translate(net, one, beam_size=2)
      self.assertAllEqual(alone.ids[0], together.ids[row])
      self.assertAllClose(alone.scores[0], together.scores[row], rtol=1e-12)

  def testWiderBeamsFindMoreProbableSequences(self):
    net, batch = _Net(1), test_sentences.Batch()
    best = [
      _Translate(net, batch, beam_size=beam_size, length_penalty=0.0).scores[
        :, 0
      ]
      for beam_size in (1, 4, 12)
    ]
    self.assertAllLessEqual(best[0] - best[1], 1e-9)
    self.assertAllLessEqual(best[1] - best[2], 1e-9)
    self.assertGreater((best[2] - best[0]).sum(), 0.01)

  def testModelOfPackedRowsTranslatesAsWell(self):
    batch = test_sentences.Batch()
    expected = _Translate(_Net(1), batch, beam_size=2)
    net = _Net(2, description=dataclasses.replace(_TINY, packed=True))
    found = _Translate(net, batch, beam_size=2)
    self.assertAllEqual(found.ids, expected.ids)

  def testLimits(self):
    net, batch = _Net(1), test_sentences.Batch()
    found = _Translate(net, batch, max_length_ratio=0.5, max_length_extra=1)
    lengths = (1 - batch.source_paddings.numpy()).sum(1)
    self.assertAllLessEqual(found.lengths[:, 0] - lengths * 0.5 - 1, 0)
    for row, length in zip(found.ids[:, 0], found.lengths[:, 0], strict=True):
      self.assertEqual(row[length - 1], 3)

  def testAnyNumberOfSentencesOfAnyLength(self):
    net, batch = _Net(1), test_sentences.Batch()
    its = _Translator(net, beam_size=2)
    spec = tf.TensorSpec([None, None], tf.int32)
    translate = tf.function(
      lambda ids: its.Translate(
        net.theta,
        NestedMap(inputs=ids, source_paddings=tf.cast(ids == 0, tf.float32)),
      ),
      input_signature=[spec],
      autograph=False,
    )
    expected = _Translate(net, batch, beam_size=2)
    self.assertAllEqual(translate(batch.inputs).ids, expected.ids)
    found = translate(batch.inputs[:3])
    self.assertAllClose(found.scores, expected.scores[:3], rtol=1e-12)

  def testBadSettings(self):
    net = _Net(1)
    with self.assertRaisesRegex(ValueError, 'max_length_extra=-1 must be 0'):
      _Translator(net, max_length_extra=-1)
    with self.assertRaisesRegex(ValueError, 'are both 0: translations'):
      _Translator(net, max_length_extra=0, max_length_ratio=0)
    cell = dense.Dense.Params().Set(name='a', input_dim=2, output_dim=2)
    other = _Net(cells=[cell])
    with self.assertRaisesRegex(ValueError, 'no TargetEmbedding among the'):
      _Translator(other)


if __name__ == '__main__':
  tf.test.main()
