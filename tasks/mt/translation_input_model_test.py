"""Tests of translation_input with a network: what may change no loss."""

import dataclasses
import functools
import itertools

import numpy as np
import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe
from tasks.mt import test_translation_data, transformer, translation_input

NestedMap = nested_map.NestedMap
_TINY = transformer.Transformer(
  num_layers=1,
  hidden_dim=12,
  num_heads=2,
  vocab_size=312,
  dim=8,
  head_dim=4,
  keep_prob=1.0,
)


@functools.cache
def _Step(packed):
  net = (
    gpipe.GPipe.Params()
    .Set(
      name='net',
      cells=dataclasses.replace(_TINY, packed=packed).Cells(),
      num_partitions=1,
      num_micro_batches=1,
      dtype=tf.float64,
    )
    .Instantiate()
  )
  params = translation_input.TranslationInput.Params().Set(packing=packed)
  net.Plan(params.Instantiate().BatchSpec())
  net.InstantiateVariables()
  return tf.function(net.ComputeGradients, autograph=False)


def _Loss(batch, *, packed=False):
  """(loss, number of tokens) of a network that is always the same."""
  result = _Step(packed)(batch, tf.constant(0, tf.int64))
  return float(result.loss), float(result.metrics.loss.weight)


class TranslationInputModelTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    test_translation_data.Write(self.folder)

  def _Batches(self, **kwargs):
    params = translation_input.TranslationInput.Params().Set(
      data_dir=self.folder, **kwargs
    )
    for batch in params.Instantiate().Dataset():
      yield NestedMap(batch)

  def testPackedEqualsUnpacked(self):
    packed = next(
      self._Batches(
        bucket_lengths=[128], batch_size=6, training=True, packing=True
      )
    )
    # Each sentence in a row of its own, as evaluation gives it.
    alone = next(self._Batches(bucket_lengths=[128], batch_size=188))
    rows = {
      tuple(np.concatenate(ids).tolist()): i
      for i, ids in enumerate(
        zip(alone.inputs.numpy(), alone.labels.numpy(), strict=True)
      )
    }
    chosen = []
    for row in range(6):
      for segment in itertools.count(1):
        ids = np.zeros([2, 128], np.int32)
        for own, name, side in zip(
          ids, ('inputs', 'labels'), ('source', 'target'), strict=True
        ):
          part = packed[name][row][
            packed[f'{side}_segment_ids'][row] == segment
          ]
          own[: len(part)] = part
        if not ids.any():
          break
        chosen.append(rows[tuple(ids.ravel().tolist())])
    self.assertGreater(len(chosen), 12)
    unpacked = NestedMap({k: tf.gather(v, chosen) for k, v in alone.items()})
    loss, weight = _Loss(packed, packed=True)
    expected, expected_weight = _Loss(unpacked)
    self.assertEqual(weight, expected_weight)
    self.assertAllClose(loss, expected, rtol=1e-10, atol=0)

  def testRowsThatFillUpCountForNothing(self):
    *_, last = self._Batches(split='dev', bucket_lengths=[64], batch_size=16)
    self.assertEqual(last.weights.numpy().sum(), 2)
    alone = NestedMap({k: v[:2] for k, v in last.items()})
    loss, weight = _Loss(last)
    expected, expected_weight = _Loss(alone)
    self.assertEqual(weight, expected_weight)
    self.assertAllClose(loss, expected, rtol=1e-10, atol=0)

  def testBucketsChangeNoLoss(self):
    """The same sentences with more padding."""
    losses = []
    for lengths in ([8, 16, 32, 64], [96]):
      total = count = 0.0
      for batch in self._Batches(
        split='dev', bucket_lengths=lengths, batch_size=9
      ):
        loss, weight = _Loss(batch)
        total, count = total + loss * weight, count + weight
      losses.append((total / count, count))
    self.assertAllClose(*losses, rtol=1e-10, atol=0)


if __name__ == '__main__':
  tf.test.main()
