"""How a mini-batch is divided into micro-batches, those of all replicas.

  rows          0 1 2 3 4 5 6 7 8 9 .      N = 10 rows, . fills up
  micro-batch   0 0 0|1 1 1|2 2 2|3 3 3    R x M = 2 x 2
  replica       0 0 0 0 0 0|1 1 1 1 1 1

Rows keep their order, so replicas change nothing in what a micro-batch holds:
the one with index r * M + m is micro-batch m of replica r.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe.gpipe import micro_batch, ordering, placement

Nest = Any


class Division(NamedTuple):
  """Sizes of a mini-batch and its parts.

  Attributes:
    batch_size: N, rows of the mini-batch.
    num_replicas: R.
    num_micro_batches: M, of each replica.
  """

  batch_size: int
  num_replicas: int
  num_micro_batches: int

  @property
  def total(self) -> int:
    """R x M, micro-batches of the mini-batch."""
    return self.num_replicas * self.num_micro_batches

  @property
  def micro_batch_size(self) -> int:
    """Rows of a micro-batch, those that only fill up among them."""
    return micro_batch.Size(self.batch_size, self.total)

  @property
  def padded_from(self) -> tuple[int, int] | None:
    """(N, R x M) where rows fill up, see stage.Stage; else None."""
    if self.batch_size % self.total:
      return self.batch_size, self.total
    return None

  def MicroSpecs(self, batch: Nest) -> Nest:
    """TensorSpecs of a micro-batch.

    Args:
      batch: the mini-batch, or its specs.

    Returns:
      The nest of specs.
    """
    return micro_batch.MicroSpecs(micro_batch.Specs(batch), self.total)

  def Rows(self, batch: Nest, replica: int) -> Nest:
    """The rows of a replica, cut out where mini-batches come from.

    From there they go straight to the devices that read them.

    Args:
      batch: the mini-batch.
      replica: its index.

    Returns:
      The nest of at least one row.
    """
    if self.num_replicas == 1:
      return batch
    size = self.num_micro_batches * self.micro_batch_size
    # A replica that is all padding fills up from the last row.
    start = min(replica * size, self.batch_size - 1)
    with tf.device(placement.InputDevice()):
      return tf.nest.map_structure(
        lambda x: None if x is None else x[start : start + size], batch
      )

  def Split(self, rows: Nest) -> Nest:
    """Splits what Rows returns, on the current device.

    Args:
      rows: of a replica.

    Returns:
      The nest, [num_micro_batches, micro_batch, ...].
    """
    return micro_batch.Split(
      ordering.Identity(rows), self.num_micro_batches, self.micro_batch_size
    )

  def Weighed(self, weights: tf.Tensor, replica: int) -> tf.Tensor:
    """Sets the weights of rows that only fill up to zero.

    Args:
      weights: [num_micro_batches, micro_batch, ...], of a replica.
      replica: its index.

    Returns:
      The weights.
    """
    if self.padded_from is None:
      return weights
    first = replica * self.num_micro_batches
    index = tf.range(first, first + self.num_micro_batches)
    mask = micro_batch.Mask(*self.padded_from, index, weights.dtype)
    return weights * tf.reshape(
      mask, [*mask.shape, *[1] * (weights.shape.rank - 2)]
    )
