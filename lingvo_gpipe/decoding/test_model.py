"""A model of five tokens, small enough to search exhaustively; for tests."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.decoding import token_rules

END, FIRST = 1, 2
VOCABULARY = 5
RULES = token_rules.TokenRules(VOCABULARY, FIRST, END, (0, 2))


def Table(rows, seed=0):
  """Log-probabilities that depend on all tokens before, by hashing them."""
  rng = np.random.default_rng(seed)
  weights = rng.normal(size=[rows, 7, 7, VOCABULARY])
  return tf.nn.log_softmax(tf.constant(2.0 * weights))


class Model:
  """A model of which the state is a hash of what was written."""

  def __init__(self, table, beam):
    self._table = table
    self._beam = beam

  def States(self):
    return tf.zeros([self._table.shape[0] * self._beam], tf.int32)

  def Extend(self, ids, parents, states, step):
    if parents is not None:
      states = tf.gather(states, parents)
    states = (3 * states + ids + 1) % 7
    rows = tf.repeat(tf.range(self._table.shape[0]), self._beam)
    place = tf.stack([rows, tf.fill(tf.shape(rows), step % 7), states], 1)
    return tf.gather_nd(self._table, place), states


def LogProb(table, row, sequence):
  """Of a sequence that ends with END, token by token."""
  state, last, total = 0, FIRST, 0.0
  for step, token in enumerate(sequence):
    state = (3 * state + last + 1) % 7
    total += table[row, step % 7, state, token]
    last = token
  return total
