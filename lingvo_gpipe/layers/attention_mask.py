"""Which tokens attention sees."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# Finite, so that a row of nothing else has a softmax; far enough below any
# score that exp of the difference is 0 in float32.
_MASKED = -1e9


def Seen(
  time: Any,
  source_time: Any,
  *,
  causal: bool = False,
  paddings: tf.Tensor | None = None,
  segment_ids: tf.Tensor | None = None,
  source_segment_ids: tf.Tensor | None = None,
) -> tf.Tensor | None:
  """Where all conditions hold that there are.

  Args:
    time: number of queries of a row.
    source_time: number of tokens that they may see.
    causal: whether query i sees no token after i.
    paddings: None or [batch, source time], 1.0 (or True) at tokens to leave
      out.
    segment_ids: None or int [batch, time]: only tokens of a query's own number
      are seen.
    source_segment_ids: int [batch, source time], with segment_ids.

  Returns:
    bool, broadcast to [batch, heads, time, source time]; None: all of it.
  """
  conditions = []
  if causal:
    to = tf.range(source_time)
    conditions.append(tf.range(time)[:, tf.newaxis] >= to)
  if paddings is not None:
    padded = tf.cast(paddings, tf.bool)
    conditions.append(tf.logical_not(padded)[:, tf.newaxis, tf.newaxis])
  if segment_ids is not None:
    ids = segment_ids[:, tf.newaxis, :, tf.newaxis]
    to = source_segment_ids[:, tf.newaxis, tf.newaxis]
    conditions.append(tf.equal(ids, to))
  seen = conditions[0] if conditions else None
  for condition in conditions[1:]:
    seen = tf.logical_and(seen, condition)
  return seen


def Apply(scores: tf.Tensor, seen: tf.Tensor | None) -> tf.Tensor:
  """Scores before softmax, so low where nothing is seen that it counts as 0.

  Args:
    scores: [batch, heads, time, source time].
    seen: of Seen.

  Returns:
    The scores.
  """
  if seen is None:
    return scores
  return scores + tf.where(
    seen, tf.constant(0.0, scores.dtype), tf.constant(_MASKED, scores.dtype)
  )
