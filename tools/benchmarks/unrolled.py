"""A mini-batch through one partition without a loop: what the loop costs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, ordering, stage_functions
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


def ComputeGradients(
  net: gpipe.GPipe,
  batch: NestedMap,
  num_micro_batches: int,
  policy: str,
  global_step: tf.Tensor,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
  """Loss and gradients by the stage functions that the loop calls.

  Args:
    net: of one partition, without shared weights and skip connections.
    batch: NestedMap of tensors [batch, ...].
    num_micro_batches: M, how many times the functions stand in the graph.
    policy: of stage_functions.StageFunctions.
    global_step: int64 scalar.

  Returns:
    The loss, and the gradients of the trainable variables in flat order.
  """
  (planned,) = net.plan.stages
  device = planned.device
  split = micro_batch.Split(batch, num_micro_batches)
  micro_spec = micro_batch.MicroSpecs(
    micro_batch.Specs(batch), num_micro_batches
  )
  functions = stage_functions.StageFunctions(
    stage_lib.Stage(0, 0, tuple(net.cells), device),
    stage_lib.Carried(micro_spec.inputs, {}),
    micro_spec,
    policy=policy,
    num_stages=1,
    jit_compile=net.params.jit_compile,
  )

  def _Run() -> tuple[tf.Tensor, list[tf.Tensor]]:
    with tf.device(device):
      theta = stage_lib.Theta(
        tf.nest.map_structure(tf.identity, net.theta.cells), {}
      )
      split_here = tf.nest.map_structure(tf.identity, split)
      sums: list[Any] = []
      loss = tf.zeros([])
      weight = tf.zeros([])
      for i in range(num_micro_batches):
        # As in the loop: one micro-batch at a time.
        with ordering.Waiting(sums[:1]):
          here = ordering.Identity(micro_batch.At(split_here, i))
        arguments = stage_functions.Arguments(
          [tf.identity(global_step), tf.constant(i, tf.int64)],
          NestedMap(labels=here.labels),
          stage_lib.Carried(here.inputs, {}),
          theta,
        )
        forward = functions.Forward(arguments, backward_follows=True)
        backward = functions.Backward(
          arguments, forward.kept, forward.residuals, {}
        )
        total = forward.outputs.carried.outputs.loss
        loss += total.total
        weight += total.weight
        gradients = [g for _, g in sorted(backward.weights, key=_Place)]
        if sums:
          gradients = [s + g for s, g in zip(sums, gradients, strict=True)]
        sums = gradients
      return loss / weight, [s / weight for s in sums]

  # In a function of its own, as the loop is, for the same reason.
  return tf.compat.v1.wrap_function(_Run, [])()


def _Place(item: tuple[int, Any]) -> int:
  return item[0]
