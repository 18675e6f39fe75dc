"""Made-up batches of translation, plain and packed; for tests."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe import nested_map

NestedMap = nested_map.NestedMap

VOCABULARY = 13


def Batch(rows=8, source_time=6, target_time=5, seed=0):
  """Sentences of several lengths, padded."""
  rng = np.random.default_rng(seed)

  def _Ids(time):
    lengths = rng.integers(2, time + 1, rows)
    padded = np.arange(time) >= lengths[:, np.newaxis]
    ids = rng.integers(4, VOCABULARY, [rows, time])
    return np.where(padded, 0, ids).astype(np.int32), padded

  inputs, source_padded = _Ids(source_time)
  labels, target_padded = _Ids(target_time)
  targets = np.concatenate([np.full([rows, 1], 2), labels[:, :-1]], 1)
  return NestedMap(
    inputs=tf.constant(inputs),
    source_paddings=tf.constant(source_padded, tf.float32),
    target_ids=tf.constant(np.where(target_padded, 0, targets), tf.int32),
    labels=tf.constant(labels),
    target_paddings=tf.constant(target_padded, tf.float32),
  )


def Pack(batch, rows):
  """The same sentences, several in a row, in a batch of so many rows."""
  width = {'source': 0, 'target': 0}
  packed = [[] for _ in range(rows)]
  for i in range(batch.inputs.shape[0]):
    packed[i % rows].append(i)
  sides = {
    'source': ('inputs',),
    'target': ('target_ids', 'labels'),
  }
  fields = NestedMap()
  for side, names in sides.items():
    lengths = (1 - batch[f'{side}_paddings'].numpy()).sum(1).astype(int)
    width[side] = max(sum(lengths[i] for i in row) for row in packed) + 1
    out = {
      name: np.zeros([rows, width[side]], np.int32)
      for name in (*names, f'{side}_positions', f'{side}_segment_ids')
    }
    paddings = np.ones([rows, width[side]], np.float32)
    for r, row in enumerate(packed):
      at = 0
      for segment, i in enumerate(row, 1):
        place = slice(at, at + lengths[i])
        for name in names:
          out[name][r, place] = batch[name].numpy()[i, : lengths[i]]
        out[f'{side}_positions'][r, place] = np.arange(lengths[i])
        out[f'{side}_segment_ids'][r, place] = segment
        paddings[r, place] = 0
        at += lengths[i]
    fields.update({k: tf.constant(v) for k, v in out.items()})
    fields[f'{side}_paddings'] = tf.constant(paddings)
  return fields
