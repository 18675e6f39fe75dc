"""Metrics as sums: what micro-batches, partial batches and replicas can add.

A mean of means is wrong as soon as micro-batches hold unequal weights (padding,
a last partial batch), so cells report totals and weights and the division
happens once, at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf


class WeightedSum(NamedTuple):
  """A mean that is still two sums: `total` over `weight`, both scalars.

  Attributes:
    total: scalar, the sum over examples (or tokens) of weight * value.
    weight: scalar, the sum of the weights.
  """

  total: Any
  weight: Any

  def Mean(self) -> tf.Tensor:
    """total / weight, and 0 where no example had any weight."""
    return tf.math.divide_no_nan(self.total, self.weight)


def Weighted(values: tf.Tensor, weights: tf.Tensor) -> WeightedSum:
  """Sums `values` under `weights`.

  Args:
    values: a value for each example (or token), any shape.
    weights: its weight, of the same shape.

  Returns:
    The WeightedSum of all of them: of integers and of half precision in
    float32, else in the dtype of `values`.
  """
  dtype = values.dtype if values.dtype == tf.float64 else tf.float32
  values, weights = tf.cast(values, dtype), tf.cast(weights, dtype)
  return WeightedSum(tf.reduce_sum(values * weights), tf.reduce_sum(weights))
