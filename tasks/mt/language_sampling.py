"""In which order groups have their turns, by temperature.

The group of n examples has a share proportional to n^(1/T) of the examples that
are trained on (Arivazhagan et al., arXiv 1907.05019). Shares are kept exactly:
with share p, the k-th turn of a group is due at time (k + u) / p, where u in
[0, 1) is a number of its own, and turns come in the order of their times. So
what comes at any place of the order can be said without what comes before.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from lingvo_gpipe import weights


def Rates(counts: np.ndarray, temperature: float) -> np.ndarray:
  """How often an example comes, in relation to those of other groups.

  Args:
    counts: int [groups], how many examples they have, or 0.
    temperature: T; 1: all examples come equally often.

  Returns:
    float64 [groups], n^(1/T) / n.
  """
  return np.maximum(counts, 1) ** (1.0 / temperature - 1.0)


def Phases(name: str, seed: int, count: int) -> np.ndarray:
  """u of some kinds of turns.

  Args:
    name: of the order.
    seed: likewise.
    count: how many kinds.

  Returns:
    float64 [count], from 0 to below 1.
  """
  return np.array(
    [weights.Hash64('turns', name, seed, i) / 2**63 for i in range(count)]
  )


def Turns(
  start: tf.Tensor, count: tf.Tensor, shares: tf.Tensor, phases: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Whose turn it is at some places of an order.

  Args:
    start: int64 scalar, the first place.
    count: int64 scalar, how many.
    shares: float64 [kinds], above 0, sum 1.
    phases: float64 [kinds].

  Returns:
    (kinds, numbers): int64 [count] each; numbers count the turns of a kind from
    0.
  """
  kinds = tf.size(shares, tf.int64)
  # As many turns are due at time t, give or take one for each kind.
  slack = kinds + 1

  def _Due(time):
    return tf.cast(
      tf.floor(tf.cast(time, tf.float64) * shares - phases), tf.int64
    )

  # One more to either side covers rounding.
  first = tf.maximum(_Due(start - slack) - 1, 0)
  end = tf.maximum(_Due(start + count + slack) + 2, first)
  amounts = end - first
  kind = tf.repeat(tf.range(kinds), amounts)
  shift = tf.cumsum(amounts, exclusive=True) - first
  number = tf.range(tf.reduce_sum(amounts)) - tf.gather(shift, kind)
  time = (tf.cast(number, tf.float64) + tf.gather(phases, kind)) / tf.gather(
    shares, kind
  )
  skipped = start - tf.reduce_sum(first)
  order = tf.argsort(time, stable=True)[skipped : skipped + count]
  return tf.gather(kind, order), tf.gather(number, order)
