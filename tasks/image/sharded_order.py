"""Orders of examples that lie in files, from which they come one by one.

Training permutes the files of each epoch and takes them in groups: the files of
a group are read in turn, an example of each, and windows of that stream are
permuted in memory. Where a group begins follows from the files' lengths, so a
restart passes over all groups before its place without opening them; of its own
group it reads, but doesn't permute, what comes before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_input, weights

# From the number of a file, an int64 scalar, to a Dataset of its examples.
Read = Callable[[tf.Tensor], tf.data.Dataset]


def Straight(read: Read, lengths: Sequence[int], start: int) -> tf.data.Dataset:
  """One pass, file by file.

  Args:
    read: gives the examples of a file.
    lengths: how many examples each file has.
    start: how many examples are passed over; files before are not opened.

  Returns:
    A Dataset of examples.
  """
  ends = list(itertools.accumulate(lengths))
  first = int(np.searchsorted(ends, start, side='right'))
  inside = start - ([0, *ends])[first]
  return tf.data.Dataset.range(first, len(lengths)).flat_map(
    lambda file: read(file).skip(
      tf.where(file == first, np.int64(inside), np.int64(0))
    )
  )


def Shuffled(
  read: Read,
  lengths: Sequence[int],
  start: int,
  *,
  seed: int,
  group_size: int,
  window: int,
) -> tf.data.Dataset:
  """Epochs without end, each in an order of its own.

  Args:
    read: gives the examples of a file, always in the same order.
    lengths: how many examples each file has, in all at least one.
    start: how many examples are passed over.
    seed: of the order.
    group_size: files that are open at a time.
    window: examples that are permuted together, and held in memory.

  Returns:
    A Dataset of examples.
  """
  num_files = len(lengths)
  num_groups = -(-num_files // group_size)
  first_group, passed = _FirstGroup(
    lengths, start, seed=seed, group_size=group_size
  )
  key = weights.Hash64('window', seed)
  max_windows = -(-sum(lengths) // window)

  @tf.autograph.experimental.do_not_convert
  def _Group(number):
    # Groups are counted through all epochs.
    epoch, group = number // num_groups, number % num_groups
    places = tf.range(
      group * group_size, tf.minimum((group + 1) * group_size, num_files)
    )
    files = base_input.EpochOrder(epoch * num_files + places, num_files, seed)

    @tf.autograph.experimental.do_not_convert
    def _Permute(index, examples):
      size = tf.shape(tf.nest.flatten(examples)[0])[0]
      draws = tf.random.stateless_uniform(
        [size],
        tf.stack([tf.constant(key, tf.int64), number * max_windows + index]),
        minval=None,
        maxval=None,
        dtype=tf.int64,
      )
      order = tf.argsort(draws, stable=True)
      return tf.nest.map_structure(lambda x: tf.gather(x, order), examples)

    windows = (
      tf.data.Dataset.from_tensor_slices(files)
      .interleave(read, cycle_length=group_size, block_length=1)
      .batch(window)
      .enumerate()
    )
    skip = tf.where(
      number == first_group, np.int64(passed // window), np.int64(0)
    )
    return windows.skip(skip).map(_Permute)

  return (
    tf.data.Dataset.range(first_group, tf.int64.max)
    .flat_map(_Group)
    .prefetch(1)
    .unbatch()
    .skip(passed % window)
  )


def _FirstGroup(
  lengths: Sequence[int], start: int, *, seed: int, group_size: int
) -> tuple[int, int]:
  """(the group that has example `start`, how many of it come before)."""
  num_files = len(lengths)
  epoch, offset = divmod(start, sum(lengths))
  places = tf.range(num_files, dtype=tf.int64) + epoch * num_files
  files = base_input.EpochOrder(places, num_files, seed).numpy()
  sizes = [
    sum(lengths[file] for file in files[i : i + group_size])
    for i in range(0, num_files, group_size)
  ]
  ends = list(itertools.accumulate(sizes))
  group = int(np.searchsorted(ends, offset, side='right'))
  return epoch * len(sizes) + group, offset - ([0, *ends])[group]
