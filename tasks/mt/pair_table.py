"""Pairs of sequences in memory, read from record files.

A pair of 30 ids takes 60 bytes (120 with more than 65,536 ids) and 32 more of
indices: a gigabyte holds some ten million pairs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from lingvo_gpipe import user_error
from tasks.mt import record_files, translation_data

# Records that are parsed together.
_CHUNK = 2048


class Sequences(NamedTuple):
  """Sequences of ids, one after the other.

  Attributes:
    values: uint16 or int32 [ids].
    starts: int64 [sequences], where each begins.
    lengths: int64 [sequences].
  """

  values: np.ndarray
  starts: np.ndarray
  lengths: np.ndarray

  def Take(self, indices: np.ndarray) -> Sequences:
    """Some of the sequences; their values are not copied."""
    return Sequences(self.values, self.starts[indices], self.lengths[indices])

  def Cut(self, length: int) -> Sequences:
    """The sequences without what goes beyond a length."""
    return self._replace(lengths=np.minimum(self.lengths, length))


class Pairs(NamedTuple):
  """Sources and targets.

  Attributes:
    source: Sequences.
    target: likewise.
    groups: int32 [pairs], which group each is of.
  """

  source: Sequences
  target: Sequences
  groups: np.ndarray

  def Take(self, indices: np.ndarray) -> Pairs:
    """Some of the pairs."""
    return Pairs(*(x.Take(indices) for x in self[:2]), self.groups[indices])

  def Cut(self, length: int) -> Pairs:
    """The pairs without what goes beyond a length."""
    return Pairs(*(x.Cut(length) for x in self[:2]), self.groups)

  def Longer(self) -> np.ndarray:
    """The length of the longer side of each pair, int64 [pairs]."""
    return np.maximum(self.source.lengths, self.target.lengths)


def Dtype(vocab_size: int) -> type[np.generic]:
  """What ids are kept in."""
  return np.uint16 if vocab_size <= 2**16 else np.int32


def Read(data: translation_data.TranslationData, limit: int = 0) -> Pairs:
  """Reads all pairs of some groups.

  Args:
    data: which.
    limit: of each group, pairs to read, the first ones; 0: all.

  Returns:
    The pairs, group by group, in the order of the records.

  Raises:
    UserError: for data that takes more than the memory there is, and for files
      that are not what the index says.
  """
  _CheckMemory(data)
  shards, counts, groups = _Shards(data.groups, limit)
  # Without a limit a record too many is to be noticed.
  takes = [count + (not limit) for count in counts]
  parts = ([], []), ([], [])
  found = np.zeros(len(shards), np.int64)
  try:
    for shard, *sides in _Chunks(shards, takes).as_numpy_iterator():
      found[shard] += len(sides[0][1])
      for part, (values, lengths) in zip(parts, sides, strict=True):
        _CheckIds(shards[shard], values, lengths, data.vocab_size)
        part[0].append(values.astype(Dtype(data.vocab_size)))
        part[1].append(lengths)
  except tf.errors.OpError:
    _CheckFiles(shards)
    raise
  for shard, count, expected in zip(shards, found, counts, strict=True):
    if count != expected:
      raise user_error.UserError(
        f'{shard} does not have the {expected} records that data.json says; '
        'copy the whole folder again, or prepare the data anew'
      )
  return Pairs(*(_Join(*part) for part in parts), np.repeat(groups, counts))


def _Shards(
  groups: Sequence[translation_data.Group], limit: int
) -> tuple[list[str], list[int], np.ndarray]:
  """(paths, how many records to read of each, int32 number of its group)."""
  paths, counts, numbers = [], [], []
  for number, group in enumerate(groups):
    left = min(limit or group.size, group.size)
    for path, count in zip(group.shards, group.counts, strict=True):
      if left:
        paths.append(path)
        counts.append(min(left, count))
        numbers.append(number)
        left -= counts[-1]
  return paths, counts, np.array(numbers, np.int32)


def _Chunks(shards: list[str], takes: list[int]) -> tf.data.Dataset:
  """(number of the shard, (values, lengths) of source, likewise of target)."""
  features = {
    name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    for name in record_files.Record._fields
  }

  @tf.autograph.experimental.do_not_convert
  def _OfShard(number, path, count):
    return (
      tf.data.TFRecordDataset(path)
      .take(count)
      .batch(_CHUNK)
      .map(lambda records: (number, records))
    )

  @tf.autograph.experimental.do_not_convert
  def _Parse(number, records):
    parsed = tf.io.parse_example(records, features)
    sides = [parsed[name] for name in record_files.Record._fields]
    return number, *((x.flat_values, x.row_lengths()) for x in sides)

  numbers = np.arange(len(shards))
  return (
    tf.data.Dataset.from_tensor_slices((numbers, shards, np.int64(takes)))
    .flat_map(_OfShard)
    .map(_Parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    .prefetch(2)
  )


def _Join(values: list[np.ndarray], lengths: list[np.ndarray]) -> Sequences:
  joined = np.concatenate(lengths)
  return Sequences(np.concatenate(values), np.cumsum(joined) - joined, joined)


def _CheckIds(
  path: str, values: np.ndarray, lengths: np.ndarray, vocab_size: int
) -> None:
  if not lengths.all():
    raise user_error.UserError(
      f'{path} has a record without source or target; prepare the data anew'
    )
  if not 0 <= values.min() <= values.max() < vocab_size:
    raise user_error.UserError(
      f'{path} has ids from {values.min()} to {values.max()}, and data.json '
      f'says that all are below {vocab_size}; prepare the data anew'
    )


def _CheckFiles(shards: Sequence[str]) -> None:
  """Raises a UserError for the first file that cannot be read."""
  for path in shards:
    try:
      for _ in tf.data.TFRecordDataset(path):
        pass
    except tf.errors.OpError as e:
      raise user_error.UserError(
        f'{path} is damaged ({e.message}); copy the whole folder again, or '
        'prepare the data anew'
      ) from e


def _CheckMemory(data: translation_data.TranslationData) -> None:
  # Twice, as parts are joined.
  needed = 2 * data.num_tokens * np.dtype(Dtype(data.vocab_size)).itemsize
  memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  if needed > memory:
    raise user_error.UserError(
      f'{data.data_dir} takes {needed / 2**30:.0f} GiB of memory, and this '
      f'machine has {memory / 2**30:.0f}; take fewer languages (param '
      'languages of the input), or fewer pairs'
    )
