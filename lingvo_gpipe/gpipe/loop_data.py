"""What goes into the micro-batch loop (loop.py), and what comes out of it."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap
Nest = Any


@dataclasses.dataclass(frozen=True)
class StageData:
  """What one stage reads in every iteration, on its device.

  Attributes:
    theta: its weights, read once, before the loop.
    gradients: TensorSpecs of the sums of gradients, of the trainable leaves of
      theta in flat order, the shared ones last.
    batch: the fields its cells ask for, [num_micro_batches, micro_batch, ...].
    global_step: int64 scalar.
    first_micro_batch: what cells see as the index of the loop's micro-batch 0;
      replicas count theirs through.
  """

  theta: stage_lib.Theta
  gradients: list[tf.TensorSpec]
  batch: NestedMap
  global_step: tf.Tensor
  first_micro_batch: int = 0


class LoopResult(NamedTuple):
  """What the loop makes of a mini-batch.

  Attributes:
    gradients: for each partition sums of the specs `StageData.gradients`, on
      its device.
    reports: for each partition the sums of what its cells report, a NestedMap
      of statistics, aux_losses, metrics; of the last one also `outputs`, the
      pipeline's WeightedSums.
    times: for each partition float64 [num_micro_batches, 7], when it ran, in
      seconds since the epoch by its device's clock: start and end of the
      forward pass, of the recomputation, of the backward pass; and when the
      gradients for other partitions left, which is before that end: the last
      gradients of weights are summed after it.
  """

  gradients: list[list[tf.Tensor]]
  reports: list[NestedMap]
  times: list[tf.Tensor]


def Metrics(outputs: Nest) -> dict[str, Any]:
  """The WeightedSums among the last stage's outputs.

  Raises:
    ValueError: where the outputs have no names.
  """
  if not isinstance(outputs, dict):
    raise ValueError(
      'the last cell must return a NestedMap of metrics.WeightedSum to be '
      f'trained or evaluated, not {micro_batch.Specs(outputs)}'
    )
  return NestedMap(
    {
      name: value
      for name, value in outputs.items()
      if all(micro_batch.IsSum(value)) and value is not None
    }
  )


def AddGradient(
  total: tf.Tensor, gradient: tf.Tensor | tf.IndexedSlices
) -> tf.Tensor:
  """The sum of a weight's gradients so far, and that of a micro-batch."""
  if isinstance(gradient, tf.IndexedSlices):
    # Only the rows that were looked up are touched.
    return tf.tensor_scatter_nd_add(
      total,
      gradient.indices[:, tf.newaxis],
      tf.cast(gradient.values, total.dtype),
    )
  return total + tf.cast(gradient, total.dtype)
