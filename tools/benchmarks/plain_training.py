"""The stack trained without pipeline, for tests."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import fprop_context
from tools.benchmarks import stack_sizes, transformer_stack


def Losses(
  sizes: stack_sizes.Sizes, num_steps: int, learning_rate: float
) -> list[float]:
  """The losses of the first steps of SGD, on the whole mini-batch."""
  cells = [cell.Instantiate() for cell in transformer_stack.Cells(sizes)]
  for cell in cells:
    cell.InstantiateVariables()
  transformer_stack.AssignWeights(
    [cell.vars for cell in cells], transformer_stack.WeightArrays(sizes)
  )
  variables = tf.nest.flatten([cell.vars for cell in cells])
  batch = transformer_stack.Batch(sizes)
  losses = []
  for _ in range(num_steps):
    with tf.GradientTape() as tape, fprop_context.FPropContext(do_eval=False):
      x = batch.inputs
      for cell in cells[:-1]:
        x = cell(x)
      loss = cells[-1](x, batch).loss.Mean()
    losses.append(float(loss))
    gradients = tape.gradient(loss, variables)
    for variable, gradient in zip(variables, gradients, strict=True):
      variable.assign_sub(learning_rate * gradient)
  return losses
