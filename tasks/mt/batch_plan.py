"""Which rows each mini-batch has, as a function of its position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster
from tasks.mt import batching, language_sampling, repeated_order


class BatchPlan:
  """Mini-batches of rows, each of rows of one bucket.

  In training buckets take turns; within a bucket its groups do; the rows that a
  group has in a bucket come in one permutation after another. All of that is
  computed from the position, see language_sampling and repeated_order.

  Args:
    lengths: int64 [rows], at most that of the last bucket.
    groups: int32 [rows], ascending in evaluation.
    buckets: shapes of mini-batches.
    rates: float64 [groups], how often their rows come, to each other.
    seed: of the order of training.

  Attributes:
    num_batches: mini-batches of one pass, the last of each bucket being as full
      as it may.
  """

  def __init__(
    self,
    lengths: np.ndarray,
    groups: np.ndarray,
    *,
    buckets: Sequence[batching.Bucket],
    rates: np.ndarray,
    seed: int,
  ):
    bucket_of = batching.BucketOf(buckets, lengths)
    # A cell is what a group has in a bucket.
    order = np.lexsort((groups, bucket_of))
    cell_of = bucket_of * len(rates) + groups
    cells, sizes = np.unique(cell_of, return_counts=True)
    cell_bucket, cell_group = np.divmod(cells, len(rates))
    amounts = sizes * rates[cell_group]
    totals = np.bincount(cell_bucket, amounts, len(buckets))
    num_rows = np.bincount(bucket_of, minlength=len(buckets))
    batch_rows = np.array([x.rows for x in buckets])
    num_batches = -(-num_rows // batch_rows)
    self.num_batches = int(num_batches.sum())
    used = np.flatnonzero(num_rows)
    shares = totals[used] / batch_rows[used]
    self._repeated = repeated_order.RepeatedOrder(sizes, seed)
    # Outside of a dataset's graph.
    with tf.init_scope(), tf.device(cluster.INPUT_DEVICE):
      self._rows = tf.constant(batch_rows)
      self._lengths = tf.constant([x.length for x in buckets], tf.int64)
      self._order = tf.constant(order)
      self._used = tf.constant(used)
      self._shares = tf.constant(shares / shares.sum())
      self._phases = tf.constant(
        language_sampling.Phases('buckets', seed, len(used))
      )
      self._cells = _Splits(np.bincount(cell_bucket, minlength=len(buckets)))
      self._cell_shares = tf.constant(amounts / totals[cell_bucket])
      self._cell_phases = tf.constant(
        language_sampling.Phases('groups', seed, len(cells))
      )
      self._cell_starts = tf.constant(np.cumsum(sizes) - sizes)
      self._row_splits = _Splits(num_rows)
      self._batch_splits = _Splits(num_batches)

  def Training(
    self, position: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A mini-batch of training.

    Args:
      position: int64 scalar, how many come before.

    Returns:
      (rows, is_row, length): int64 [N], bool [N], all True, and int64 scalar,
      that of the bucket.
    """
    one = tf.constant(1, tf.int64)
    turns = language_sampling.Turns(position, one, self._shares, self._phases)
    which, batch = (x[0] for x in turns)
    bucket = self._used[which]
    count = self._rows[bucket]
    begin, end = self._cells[bucket], self._cells[bucket + 1]
    cell, number = language_sampling.Turns(
      batch * count,
      count,
      self._cell_shares[begin:end],
      self._cell_phases[begin:end],
    )
    cell += begin
    place = self._repeated.Elements(cell, number)
    rows = tf.gather(self._order, tf.gather(self._cell_starts, cell) + place)
    return rows, tf.ones_like(rows, tf.bool), self._lengths[bucket]

  def Evaluation(
    self, position: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A mini-batch of one pass over all rows.

    Args:
      position: int64 scalar, below num_batches.

    Returns:
      As Training does; is_row is False where rows only fill up.
    """
    ends = self._batch_splits[1:]
    bucket = tf.searchsorted(ends, position[tf.newaxis], side='right')[0]
    count = self._rows[bucket]
    start = (position - self._batch_splits[bucket]) * count
    places = self._row_splits[bucket] + start + tf.range(count)
    end = self._row_splits[bucket + 1]
    rows = tf.gather(self._order, tf.minimum(places, end - 1))
    return rows, places < end, self._lengths[bucket]


def _Splits(counts: np.ndarray) -> tf.Tensor:
  """Where parts of so many begin, and the last ends: int64 [parts + 1]."""
  return tf.constant(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
