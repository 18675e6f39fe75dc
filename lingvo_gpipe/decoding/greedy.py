"""Greedy search: always the most probable token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.decoding import token_rules

NestedMap = nested_map.NestedMap


def Search(
  extend: Callable[..., tuple[tf.Tensor, Any]],
  states: Any,
  limits: tf.Tensor,
  rules: token_rules.TokenRules,
  dtype: tf.DType = tf.float32,
) -> NestedMap:
  """Writes a sequence for each row, one token of all rows at a time.

  Args:
    extend: called with (ids, parents, states, step): int32 [rows], None, the
      states before, and an int32 scalar; returns ([rows, vocab_size] logarithms
      of probabilities of the next token, new states).
    states: nest of tensors that `extend` keeps from one step to the next.
    limits: int32 [rows], the length at which a sequence ends, its end included.
    rules: which ids may be written.
    dtype: of what `extend` returns.

  Returns:
    NestedMap of
      ids: int32 [rows, 1, longest], padded with 0, the ends included;
      lengths: int32 [rows, 1];
      log_probs: [rows, 1], of whole sequences.
  """
  rows, longest = tf.shape(limits)[0], tf.reduce_max(limits)

  def _Body(step, last, ended, lengths, log_probs, ids, states):
    scores, states = extend(last, None, states, step)
    scores = rules.Allowed(scores, step, limits)
    best = tf.argmax(scores, -1, tf.int32)
    best = tf.where(ended, 0, best)
    gained = tf.reduce_max(scores, -1)
    log_probs += tf.where(ended, tf.zeros_like(gained), gained)
    lengths += tf.cast(tf.logical_not(ended), tf.int32)
    ids = ids.write(step, best)
    ended = tf.logical_or(ended, tf.equal(best, rules.end_id))
    return step + 1, best, ended, lengths, log_probs, ids, states

  def _Goes(step, unused_last, ended, *unused):
    del step
    return tf.logical_not(tf.reduce_all(ended))

  step, _, _, lengths, log_probs, ids, _ = tf.while_loop(
    _Goes,
    _Body,
    (
      tf.constant(0),
      tf.fill([rows], rules.first_id),
      tf.zeros([rows], tf.bool),
      tf.zeros([rows], tf.int32),
      tf.zeros([rows], dtype),
      tf.TensorArray(tf.int32, longest, element_shape=limits.shape),
      states,
    ),
    parallel_iterations=1,
  )
  written = tf.transpose(ids.stack()[:step])
  missing = tf.zeros([rows, longest - step], tf.int32)
  return NestedMap(
    ids=tf.concat([written, missing], 1)[:, tf.newaxis],
    lengths=lengths[:, tf.newaxis],
    log_probs=log_probs[:, tf.newaxis],
  )
