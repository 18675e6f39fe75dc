"""The plain model that pipelines are compared with, for tests.

The same cells one after the other, micro-batch by micro-batch, under one tape:
no partitions, no loops of TensorFlow, no re-materialization.
"""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, nested_map
from lingvo_gpipe.gpipe import loop_data

NestedMap = nested_map.NestedMap


def ComputeGradients(
  cells: list[base_layer.BaseLayer],
  batch: NestedMap,
  num_micro_batches: int,
  global_step: int,
) -> NestedMap:
  """Loss and gradients of a mini-batch, without a pipeline.

  Args:
    cells: layers with variables.
    batch: the mini-batch.
    num_micro_batches: M.
    global_step: the step.

  Returns:
    NestedMap of loss, metrics and statistics as GPipe.ComputeGradients defines
    them, of the trainable `variables` in flat order, and of their `grads`.
  """
  trainable = [
    v for cell in cells for v in tf.nest.flatten(cell.vars) if v.trainable
  ]
  batch_size = batch.inputs.shape[0]
  # The last micro-batches may be smaller, and the very last empty.
  size = -(-batch_size // num_micro_batches)
  objective, sums = 0.0, None
  statistics: dict[str, NestedMap] = {}
  with tf.GradientTape() as tape:
    for i in range(-(-batch_size // size)):
      part = NestedMap(
        {k: v[i * size : (i + 1) * size] for k, v in batch.items()}
      )
      x = part.inputs
      context = fprop_context.FPropContext(
        do_eval=False, global_step=global_step, micro_batch=i
      )
      with context:
        for cell in cells:
          fields = {name: part[name] for name in cell.BATCH_FIELDS}
          x = cell(x, NestedMap(fields)) if fields else cell(x)
      objective += x.loss.total + sum(context.aux_losses.values())
      values = loop_data.Metrics(x)
      sums = (
        values if sums is None else tf.nest.map_structure(tf.add, sums, values)
      )
      for path, values in context.statistics.items():
        if path in statistics:
          values = tf.nest.map_structure(tf.add, statistics[path], values)
        statistics[path] = values
    loss = objective / sums.loss.weight
  return NestedMap(
    loss=loss,
    metrics=sums,
    grads=tape.gradient(loss, trainable),
    variables=trainable,
    statistics=statistics,
  )
