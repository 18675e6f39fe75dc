"""The forward pipeline of evaluation and prediction: one `tf.while_loop`.

An iteration is a micro-batch and its body chains the stages, each under its own
`tf.device`. Iterations depend on each other only through sums on the last
device, so stage 0 works on micro-batch i + 1 while stage 1 works on i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map, weights
from lingvo_gpipe.gpipe import micro_batch, ordering
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap
Nest = Any


def Run(
  stages: Sequence[stage_lib.Stage],
  theta: Sequence[list[NestedMap]],
  batches: Sequence[NestedMap],
  inputs: Nest,
  num_micro_batches: int,
  *,
  spec: Nest,
  global_step: Any,
) -> Nest:
  """Evaluates all stages on a mini-batch.

  Args:
    stages: from the first to the last.
    theta: of each stage's cells.
    batches: for each stage the fields its cells ask for, on its device,
      [num_micro_batches, micro_batch, ...].
    inputs: the first stage's, [num_micro_batches, micro_batch, ...].
    num_micro_batches: M.
    spec: nest of TensorSpecs of what the last stage returns for a micro-batch.
    global_step: see FPropContext.

  Returns:
    The last stage's outputs: WeightedSums summed over micro-batches, other
    tensors [batch, ...] in the order of the mini-batch.
  """
  device = stages[-1].device

  def _Chain(index: tf.Tensor) -> Nest:
    with tf.device(stages[0].device):
      first = micro_batch.At(inputs, index)
    on_the_way = stage_lib.OnTheWay(stage_lib.Carried(first, {}))
    for k, stage in enumerate(stages):
      with tf.device(stage.device):
        result = stage.FProp(
          theta[k],
          ordering.Identity(on_the_way.Receive(stage)),
          micro_batch.At(batches[k], index),
          do_eval=True,
          global_step=global_step,
          micro_batch_index=index,
        )
      on_the_way.Send(result.carried)
    return on_the_way.carried.outputs

  leaves, pack = micro_batch.Flatten(spec)
  is_sum = micro_batch.IsSum(spec)
  _CheckConcatenable(spec, leaves, is_sum)

  def _Part(flat: list[Any], summed: bool) -> list[Any]:
    return [x for x, s in zip(flat, is_sum, strict=True) if s == summed]

  def _Body(index, kept, sums):
    flat, unused_pack = micro_batch.Flatten(_Chain(index))
    with tf.device(device):
      kept = [
        array.write(index, x)
        for array, x in zip(kept, _Part(flat, False), strict=True)
      ]
      sums = [
        total + tf.cast(x, total.dtype)
        for total, x in zip(sums, _Part(flat, True), strict=True)
      ]
    with tf.device(stages[0].device):
      return index + 1, kept, sums

  with tf.device(device):
    kept = [
      tf.TensorArray(x.dtype, num_micro_batches, element_shape=x.shape)
      for x in _Part(leaves, False)
    ]
    sums = [
      tf.zeros(x.shape, weights.AtLeastFloat32(x.dtype))
      for x in _Part(leaves, True)
    ]
  # The counter, and what TensorFlow adds to it, stay off the client.
  with tf.device(stages[0].device):
    unused_index, kept, sums = tf.while_loop(
      lambda index, *unused: index < num_micro_batches,
      _Body,
      (tf.constant(0), kept, sums),
      parallel_iterations=max(2, len(stages)),
    )
  with tf.device(device):
    concatenated = iter([array.concat() for array in kept])
  sums = iter(sums)
  return pack([next(sums if s else concatenated) for s in is_sum])


def _CheckConcatenable(spec: Nest, leaves: list, is_sum: list[bool]) -> None:
  for leaf, summed in zip(leaves, is_sum, strict=True):
    if not summed and not leaf.shape.rank:
      raise ValueError(
        'the last cell returns a scalar, which can be neither concatenated '
        'nor summed over micro-batches; wrap it in metrics.WeightedSum '
        f'(outputs: {spec})'
      )
