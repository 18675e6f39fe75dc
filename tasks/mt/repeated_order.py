"""Orders without end of many small sets: one permutation after another.

The permutation of a pass over a set of n is a block cipher (Even and Mansour's)
of any size: random affine maps, with a fixed random permutation after each,

  place = fixed[a * place + b mod n]

where b and a, a prime above n, are hashed from the number of the pass and the
round. TensorFlow's RandomIndexShuffle, which base_input uses, takes up to a
millisecond for an index of a set of two.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster, weights

# Sets are smaller, so that products fit in 63 bits, and so that no prime from
# here on has a factor in common with the size of a set.
_MAX_SIZE = 2**31
_PRIMES_RANGE = 2**16

_ROUNDS = 3

_ODD = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7)


class RepeatedOrder:
  """The orders of some sets.

  Args:
    sizes: int64 [sets], how many elements they have, at least 1 each.
    seed: of all orders.
  """

  def __init__(self, sizes: np.ndarray, seed: int):
    assert sizes.min() > 0 and sizes.max() < _MAX_SIZE
    starts = np.cumsum(sizes) - sizes
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    # Raw bits are the same in all versions of NumPy.
    bits = np.random.Philox(key=weights.Hash64('order', seed))
    fixed = np.lexsort((bits.random_raw(len(set_of)), set_of)) - starts[set_of]
    with tf.init_scope(), tf.device(cluster.INPUT_DEVICE):
      self._sizes = tf.constant(sizes)
      self._starts = tf.constant(starts)
      self._fixed = tf.constant(fixed)
      self._primes = tf.constant(_Primes())
      self._key = tf.constant(weights.Hash64('passes', seed), tf.uint64)

  def Elements(self, sets: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Which elements stand at some places of the orders.

    Args:
      sets: int64 [n].
      numbers: int64 [n], places in the set's order, from 0.

    Returns:
      int64 [n], each below the size of its set.
    """
    size, start = (tf.gather(x, sets) for x in (self._sizes, self._starts))
    place = numbers % size
    draws = self._Draws(sets, numbers // size)
    for which, shift in zip(draws[::2], draws[1::2], strict=True):
      prime = tf.gather(self._primes, which % self._primes.shape[0])
      place = (prime * place + shift % size) % size
      place = tf.gather(self._fixed, start + place)
    return place

  def _Draws(self, sets: tf.Tensor, times: tf.Tensor) -> list[tf.Tensor]:
    """Random int64 [n], 0 or more, two a round, that belong to passes."""
    x = tf.cast(tf.stack([sets, times]), tf.uint64)
    x = _Mixed(_Mixed(x[0] + self._key) + x[1])
    steps = [[(i * _ODD[0]) % 2**64] for i in range(2 * _ROUNDS)]
    x = _Mixed(x + tf.constant(steps, tf.uint64))
    return tf.unstack(
      tf.cast(tf.bitwise.right_shift(x, tf.constant(1, tf.uint64)), tf.int64)
    )


def _Mixed(x: tf.Tensor) -> tf.Tensor:
  """Each bit of the result depends on all of x, uint64."""
  half = tf.constant(32, tf.uint64)
  for odd in _ODD:
    x = (x ^ tf.bitwise.right_shift(x, half)) * tf.constant(odd, tf.uint64)
  return x ^ tf.bitwise.right_shift(x, half)


def _Primes() -> np.ndarray:
  """int64, the primes in a range from _MAX_SIZE on."""
  limit = int((_MAX_SIZE + _PRIMES_RANGE) ** 0.5) + 1
  small = np.ones(limit + 1, bool)
  large = np.ones(_PRIMES_RANGE, bool)
  for i in range(2, limit + 1):
    if small[i]:
      small[i * i :: i] = False
      large[-_MAX_SIZE % i :: i] = False
  return np.flatnonzero(large) + _MAX_SIZE
