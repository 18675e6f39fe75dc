"""Beam search with a length penalty, in one `tf.while_loop`.

Each row keeps `beam_size` sequences that are being written and as many that
have ended. A row's result depends neither on the other rows nor on how long
they take: the loop ends when no sequence of any row can become better than what
has ended, and nothing that is written after that changes a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.decoding import token_rules

NestedMap = nested_map.NestedMap


def LengthPenalty(lengths: tf.Tensor, alpha: float, dtype: Any) -> tf.Tensor:
  """What log-probabilities are divided by: ((5 + length) / 6)^alpha.

  Wu et al., Google's Neural Machine Translation System (arXiv 1609.08144),
  equation 14, without its coverage penalty.

  Args:
    lengths: int, of any shape, the end included.
    alpha: 0 or more; 0 prefers short sequences.
    dtype: of the result.

  Returns:
    Of the shape of lengths, 1 or more.
  """
  return ((5.0 + tf.cast(lengths, dtype)) / 6.0) ** alpha


def Search(
  extend: Callable[..., tuple[tf.Tensor, Any]],
  states: Any,
  limits: tf.Tensor,
  rules: token_rules.TokenRules,
  *,
  beam_size: int,
  alpha: float,
  dtype: tf.DType = tf.float32,
) -> NestedMap:
  """Writes the best sequences of each row.

  Args:
    extend: called with (ids, parents, states, step): int32 [rows * beam_size];
      int32 [rows * beam_size], which sequence of the step before each is the
      continuation of, so that states are to be gathered by it; the states
      before; an int32 scalar. Returns ([rows * beam_size, vocab_size]
      logarithms of probabilities of the next token, new states).
    states: nest of tensors [rows * beam_size, ...] that `extend` keeps from one
      step to the next.
    limits: int32 [rows], the length at which a sequence ends, its end included.
    rules: which ids may be written.
    beam_size: sequences of a row.
    alpha: of the length penalty.
    dtype: of what `extend` returns.

  Returns:
    NestedMap, the best sequence first, of
      ids: int32 [rows, beam_size, longest], padded with 0, the ends included;
      lengths: int32 [rows, beam_size]; 0 where there is no such sequence;
      log_probs: [rows, beam_size], of whole sequences;
      scores: [rows, beam_size], these divided by the length penalty.
  """
  search = _BeamSearch(limits, rules, beam_size, alpha, dtype)
  return search.Run(extend, states)


class _BeamSearch:
  """The loop; see Search."""

  def __init__(
    self,
    limits: tf.Tensor,
    rules: token_rules.TokenRules,
    beam_size: int,
    alpha: float,
    dtype: tf.DType,
  ):
    if beam_size < 1:
      raise ValueError(f'beam_size={beam_size} must be 1 or more')
    if alpha < 0.0:
      raise ValueError(f'length_penalty={alpha} must be 0 or more')
    self._limits = limits
    self._rules = rules
    self._beam = beam_size
    self._alpha = alpha
    self._dtype = dtype
    self._rows = tf.shape(limits)[0]
    self._longest = tf.reduce_max(limits)

  def _Best(self, live: NestedMap) -> tf.Tensor:
    """The best score that a row's live sequences may still get, [rows].

    Log-probabilities only fall, and the longest sequence's are divided by most.
    """
    best = tf.reduce_max(live.log_probs, 1)
    score = best / LengthPenalty(self._limits, self._alpha, self._dtype)
    return tf.where(best > token_rules.IMPOSSIBLE / 2, score, best)

  def _Goes(self, step, live: NestedMap, ended: NestedMap, states) -> tf.Tensor:
    del states
    worst = tf.reduce_min(ended.scores, 1)
    return tf.logical_and(
      step < self._longest, tf.reduce_any(self._Best(live) > worst)
    )

  def _Flat(self, x: tf.Tensor) -> tf.Tensor:
    return tf.reshape(x, [self._rows * self._beam])

  def _Start(self) -> tuple[NestedMap, NestedMap]:
    """One live sequence of nothing in each row, and none that has ended."""
    shape = [self._rows, self._beam]
    nothing = tf.fill(shape, tf.cast(token_rules.IMPOSSIBLE, self._dtype))
    ids = tf.zeros([*shape, self._longest], tf.int32)
    first = tf.range(self._beam) == 0
    live = NestedMap(
      ids=ids,
      last=tf.fill(shape, self._rules.first_id),
      # Of each live sequence, which one of the step before it continues.
      parents=tf.reshape(tf.range(self._rows * self._beam), shape),
      log_probs=tf.where(first, tf.zeros_like(nothing), nothing),
    )
    ended = NestedMap(
      ids=ids,
      lengths=tf.zeros(shape, tf.int32),
      log_probs=nothing,
      scores=nothing,
    )
    return live, ended

  def Run(self, extend: Callable[..., Any], states: Any) -> NestedMap:
    """Searches; see Search."""
    beam, size = self._beam, self._rules.vocab_size
    limits = tf.repeat(self._limits, beam)

    def _Body(step, live, ended, states):
      scores, states = extend(
        self._Flat(live.last), self._Flat(live.parents), states, step
      )
      scores = self._rules.Allowed(scores, step, limits)
      scores = tf.reshape(scores, [self._rows, beam, size])
      totals = live.log_probs[..., tf.newaxis] + scores
      # A sequence has one end, so that half of these go on.
      log_probs, places = tf.math.top_k(
        tf.reshape(totals, [self._rows, beam * size]), 2 * beam
      )
      tokens, sequences = places % size, places // size
      ids = tf.gather(live.ids, sequences, batch_dims=1)
      column = tf.equal(tf.range(self._longest), step)
      ids = tf.where(column, tokens[..., tf.newaxis], ids)
      is_end = tf.equal(tokens, self._rules.end_id)
      live = self._Live(ids, tokens, sequences, log_probs, is_end)
      ended = self._Ended(ended, ids, log_probs, is_end, step + 1)
      return step + 1, live, ended, states

    live, ended = self._Start()
    _, _, ended, _ = tf.while_loop(
      self._Goes,
      _Body,
      (tf.constant(0), live, ended, states),
      shape_invariants=tf.nest.map_structure(
        _Invariant, (tf.constant(0), live, ended, states)
      ),
      parallel_iterations=1,
    )
    there = ended.scores > token_rules.IMPOSSIBLE / 2
    ended.lengths = tf.where(there, ended.lengths, 0)
    return ended

  def _Live(self, ids, tokens, sequences, log_probs, is_end) -> NestedMap:
    """The best sequences that have not ended."""
    nothing = tf.cast(token_rules.IMPOSSIBLE, self._dtype)
    log_probs, which = tf.math.top_k(
      tf.where(is_end, nothing, log_probs), self._beam
    )
    sequences = tf.gather(sequences, which, batch_dims=1)
    before = tf.range(self._rows)[:, tf.newaxis] * self._beam
    return NestedMap(
      ids=tf.gather(ids, which, batch_dims=1),
      last=tf.gather(tokens, which, batch_dims=1),
      parents=before + sequences,
      log_probs=tf.maximum(log_probs, nothing),
    )

  def _Ended(self, ended, ids, log_probs, is_end, length) -> NestedMap:
    """The best of what had ended and what ends now."""
    nothing = tf.cast(token_rules.IMPOSSIBLE, self._dtype)
    log_probs = tf.where(is_end, log_probs, nothing)
    scores = tf.where(
      log_probs > nothing / 2,
      log_probs / LengthPenalty(length, self._alpha, self._dtype),
      nothing,
    )
    lengths = tf.fill(tf.shape(scores), length)
    both = NestedMap(
      ids=tf.concat([ended.ids, ids], 1),
      lengths=tf.concat([ended.lengths, lengths], 1),
      log_probs=tf.concat([ended.log_probs, log_probs], 1),
    )
    scores, which = tf.math.top_k(
      tf.concat([ended.scores, scores], 1), self._beam
    )
    best = tf.nest.map_structure(
      lambda x: tf.gather(x, which, batch_dims=1), both
    )
    return NestedMap(**best, scores=scores)


def _Invariant(x: tf.Tensor) -> tf.TensorShape:
  """Sizes that are computed look different after a step."""
  return tf.TensorShape([None] * x.shape.rank)
