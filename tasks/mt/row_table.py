"""Rows of ids, of one sentence or several, as a mini-batch needs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster
from tasks.mt import packing, pair_table, vocabulary


class _Side(NamedTuple):
  """Source or target; positions and segments are None with a sentence a row."""

  values: tf.Tensor
  starts: tf.Tensor
  lengths: tf.Tensor
  positions: tf.Tensor | None
  segments: tf.Tensor | None


class RowTable:
  """Rows, from which mini-batches are gathered.

  Args:
    source: the rows' ids.
    target: likewise.
    sentences: for rows of several sentences, these: a pair of Sequences, of
      which `values` is the same as that of the rows, in order; and int64, the
      row that each is in. None: a row is a sentence.

  Attributes:
    lengths: int64 [rows], of the longer side of each.
  """

  def __init__(
    self,
    source: pair_table.Sequences,
    target: pair_table.Sequences,
    sentences: tuple[pair_table.Pairs, np.ndarray] | None = None,
  ):
    self.lengths = np.maximum(source.lengths, target.lengths)
    # Outside of a dataset's graph, which must stay below 2 GB.
    with tf.init_scope(), tf.device(cluster.INPUT_DEVICE):
      self._source = _MakeSide(source, sentences, 0)
      self._target = _MakeSide(target, sentences, 1)

  @classmethod
  def Packed(
    cls, pairs: pair_table.Pairs, row_length: int
  ) -> tuple[RowTable, np.ndarray]:
    """Rows of several sentences of the same group.

    Args:
      pairs: none longer than row_length.
      row_length: of the rows.

    Returns:
      (table, int32 group of each row).
    """
    rows = np.zeros(len(pairs.groups), np.int64)
    row_groups = []
    for group in np.unique(pairs.groups):
      members = np.flatnonzero(pairs.groups == group)
      packed = packing.Pack(
        pairs.source.lengths[members], pairs.target.lengths[members], row_length
      )
      rows[members] = packed + len(row_groups)
      row_groups += [group] * (packed.max() + 1)
    order = np.argsort(rows, kind='stable')
    rows = rows[order]
    sentences = pairs.Take(order)
    sentences = sentences._replace(
      source=_Copied(sentences.source), target=_Copied(sentences.target)
    )
    firsts = np.searchsorted(rows, np.arange(len(row_groups)))
    sides = [
      pair_table.Sequences(
        x.values, x.starts[firsts], np.add.reduceat(x.lengths, firsts)
      )
      for x in sentences[:2]
    ]
    return cls(*sides, (sentences, rows)), np.array(row_groups, np.int32)

  def Gather(
    self,
    rows: tf.Tensor,
    is_row: tf.Tensor,
    length: tf.Tensor,
    *,
    packing_fields: bool,
    ends_source: bool,
  ) -> dict[str, tf.Tensor]:
    """The fields of some rows.

    Args:
      rows: int64 [N], which.
      is_row: bool [N]; others are all padding.
      length: int64 scalar, what they are padded to.
      packing_fields: whether positions and segments are wanted.
      ends_source: whether to put eos where a source ends, as it may be cut.

    Returns:
      The fields of TranslationInput, without those of evaluation.
    """
    ids, padded, positions, segments = _Padded(
      self._source, rows, is_row, length
    )
    if ends_source:
      is_last = tf.concat([padded[:, 1:], tf.ones_like(padded[:, :1])], 1)
      ids = tf.where(is_last & ~padded, vocabulary.EOS, ids)
    fields = {'inputs': ids, 'source_paddings': tf.cast(padded, tf.float32)}
    if packing_fields:
      fields |= {'source_positions': positions, 'source_segment_ids': segments}
    ids, padded, positions, segments = _Padded(
      self._target, rows, is_row, length
    )
    before = tf.pad(ids[:, :-1], [[0, 0], [1, 0]])
    before = tf.where(positions == 0, vocabulary.BOS, before)
    fields |= {
      'target_ids': tf.where(padded, vocabulary.PAD, before),
      'labels': ids,
      'target_paddings': tf.cast(padded, tf.float32),
    }
    if packing_fields:
      fields |= {'target_positions': positions, 'target_segment_ids': segments}
    fields['weights'] = tf.cast(is_row, tf.float32)
    return fields


def _Copied(sequences: pair_table.Sequences) -> pair_table.Sequences:
  """The same sequences, one after the other without gaps."""
  lengths = sequences.lengths
  starts = np.cumsum(lengths) - lengths
  places = np.repeat(sequences.starts - starts, lengths)
  places += np.arange(len(places))
  return pair_table.Sequences(sequences.values[places], starts, lengths)


def _MakeSide(
  rows: pair_table.Sequences,
  sentences: tuple[pair_table.Pairs, np.ndarray] | None,
  side: int,
) -> _Side:
  positions = segments = None
  if sentences is not None:
    pairs, row_of = sentences
    starts, lengths = pairs[side].starts, pairs[side].lengths
    places = np.arange(len(rows.values))
    positions = (places - np.repeat(starts, lengths)).astype(np.uint16)
    numbers = np.arange(len(row_of)) - np.searchsorted(row_of, row_of) + 1
    segments = np.repeat(numbers.astype(np.uint16), lengths)
  return _Side(
    *(
      None if x is None else tf.constant(x)
      for x in (*rows, positions, segments)
    )
  )


def _Padded(
  side: _Side, rows: tf.Tensor, is_row: tf.Tensor, length: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
  """(ids, whether padding, positions, segments), [N, length] each."""
  lengths = tf.where(is_row, tf.gather(side.lengths, rows), 0)
  column = tf.range(length)
  padded = column >= lengths[:, tf.newaxis]
  places = tf.gather(side.starts, rows)[:, tf.newaxis] + column
  places = tf.where(padded, tf.constant(0, tf.int64), places)

  def _Values(values):
    found = tf.cast(tf.gather(values, places), tf.int32)
    return tf.where(padded, 0, found)

  if side.positions is None:
    segments = tf.cast(~padded, tf.int32)
    positions = tf.cast(column, tf.int32) * segments
  else:
    positions, segments = _Values(side.positions), _Values(side.segments)
  return _Values(side.values), padded, positions, segments
