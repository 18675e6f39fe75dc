"""Re-materialization: a stage's gradient from its inputs alone.

Paper, section 2.3: a partition keeps only the activations at its boundary; in
the backward pass it computes its forward function once more. Here that is a
forward pass under a tape in the body of the backward loop. The intermediate
activations of a micro-batch therefore live within one iteration of one
partition and nowhere else.

    stored inputs --> stage.FProp --> outputs        (the recomputed forward)
                          |              |
                         tape  <-- output gradients  (from the next partition)
                          |
          weight gradients, input gradients          (to the previous one)

The last partition's first forward pass is this one: it never computes twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.gpipe import stage as stage_lib

Nest = Any


class StageGradients(NamedTuple):
  """What the backward pass of a stage gives for one micro-batch.

  Attributes:
    forward: the StageOutputs of the (re)computed forward pass.
    weights: gradients of the trainable leaves of theta, in flat order.
    inputs: gradients of the floating leaves of the inputs, in flat order.
  """

  forward: stage_lib.StageOutputs
  weights: list[tf.Tensor]
  inputs: list[tf.Tensor]


def FloatLeaves(nest: Nest) -> list[Any]:
  """Those leaves of a nest that gradients flow through."""
  leaves, unused_pack = micro_batch.Flatten(nest)
  return [x for x in leaves if x.dtype.is_floating]


def Objective(forward: stage_lib.StageOutputs) -> tf.Tensor:
  """The last stage's scalar to differentiate: total loss of the micro-batch.

  Sums only: the division by the mini-batch's weight comes after the last
  micro-batch, when the weight is known.
  """
  total = forward.outputs.loss.total
  for aux_loss in forward.aux_losses.values():
    total += tf.cast(aux_loss, total.dtype)
  return total


def ForwardAndBackward(
  stage: stage_lib.Stage,
  theta: list[nested_map.NestedMap],
  trainable: list[bool],
  inputs: Nest,
  batch: nested_map.NestedMap,
  output_gradients: list[tf.Tensor] | None,
  *,
  global_step: Any,
  micro_batch_index: Any,
) -> StageGradients:
  """(Re)computes a stage from its inputs and differentiates it.

  Args:
    stage: the stage.
    theta: of its cells.
    trainable: for each flat leaf of theta, whether it wants a gradient.
    inputs: what the stage received in the forward pass.
    batch: the micro-batch's fields for this stage.
    output_gradients: gradients of the objective by the floating leaves of the
      stage's outputs; None for the last stage, whose outputs hold the loss.
    global_step: see FPropContext.
    micro_batch_index: see FPropContext.

  Returns:
    The StageGradients. Stage 0 gives no gradients of its inputs: they are data.
  """
  weights = [
    w for w, t in zip(tf.nest.flatten(theta), trainable, strict=True) if t
  ]
  float_inputs = FloatLeaves(inputs) if stage.index else []
  with tf.device(stage.device):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
      tape.watch(weights)
      tape.watch(float_inputs)
      forward = stage.FProp(
        theta,
        inputs,
        batch,
        do_eval=False,
        global_step=global_step,
        micro_batch_index=micro_batch_index,
      )
      if output_gradients is None:
        targets, target_gradients = [Objective(forward)], []
      else:
        targets = FloatLeaves(forward.outputs)
        target_gradients = list(output_gradients)
        targets += forward.aux_losses.values()
      # The objective has slope 1 in each of these: see Objective.
      for target in targets[len(target_gradients) :]:
        target_gradients.append(tf.ones_like(target))
    gradients = tape.gradient(
      targets,
      [*weights, *float_inputs],
      target_gradients,
      unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    gradients = [tf.convert_to_tensor(g) for g in gradients]
  return StageGradients(
    forward, gradients[: len(weights)], gradients[len(weights) :]
  )
