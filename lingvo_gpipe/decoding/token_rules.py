"""What a search may write, and when it must end."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

# Lower than any log-probability, yet finite, so that sums stay numbers.
IMPOSSIBLE = -1e30


@dataclasses.dataclass(frozen=True)
class TokenRules:
  """The ids of a vocabulary that have a meaning.

  Attributes:
    vocab_size: number of ids.
    first_id: what comes before a sequence, such as <s>.
    end_id: what ends it, such as </s>.
    forbidden: ids that are never written, such as padding and language tags.
  """

  vocab_size: int
  first_id: int
  end_id: int
  forbidden: tuple[int, ...] = ()

  def __post_init__(self):
    ids = (self.first_id, self.end_id, *self.forbidden)
    outside = [i for i in ids if not 0 <= i < self.vocab_size]
    if outside:
      raise ValueError(
        f'ids {outside} are outside of a vocabulary of {self.vocab_size}'
      )
    if self.end_id in self.forbidden:
      raise ValueError(f'end_id={self.end_id} cannot be forbidden')

  def Allowed(
    self, log_probs: tf.Tensor, step: tf.Tensor, limits: tf.Tensor
  ) -> tf.Tensor:
    """Log-probabilities, IMPOSSIBLE where the token may not be written.

    Args:
      log_probs: [rows, vocab_size].
      step: int32 scalar, how many tokens have been written.
      limits: int32 [rows], the length at which a sequence ends, its end
        included; 1 or more.

    Returns:
      [rows, vocab_size].
    """
    is_end = np.arange(self.vocab_size) == self.end_id
    is_free = np.ones(self.vocab_size, bool)
    is_free[list(self.forbidden)] = False
    must_end = (step + 1 >= limits)[:, tf.newaxis]
    allowed = tf.where(must_end, tf.constant(is_end), tf.constant(is_free))
    return tf.where(allowed, log_probs, tf.cast(IMPOSSIBLE, log_probs.dtype))
