"""Loss and gradients of a mini-batch, out of what its micro-batches summed up.

The objective is (sum of losses + sum of auxiliary losses) / sum of weights,
each sum over the micro-batches of all replicas. As in section 2.2 of the paper,
gradients are accumulated over micro-batches and applied at the end of a
mini-batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import metrics, nested_map
from lingvo_gpipe.gpipe import (
  loop_data,
  replicas,
  shared_weights,
  stage_functions,
)

NestedMap = nested_map.NestedMap


def Reduce(
  pipelines: Sequence[Sequence[stage_functions.StageFunctions]],
  results: Sequence[loop_data.LoopResult],
  variables: Sequence[NestedMap],
  lenders: Mapping[str, shared_weights.Lender],
) -> NestedMap:
  """Puts together what the loops of all replicas give.

  Args:
    pipelines: the stages of each replica.
    results: of its loop.
    variables: of each cell.
    lenders: see shared_weights.Find.

  Returns:
    What GPipe.ComputeGradients returns.
  """
  stages = [traced.stage for traced in pipelines[0]]
  all_reports = replicas.SumReports([r.reports for r in results], stages)
  reported: dict[str, dict[str, Any]] = {
    'statistics': {},
    'aux_losses': {},
    'metrics': {},
  }
  for reports in all_reports:
    for kind, merged in reported.items():
      merged.update(reports[kind])
  sums = all_reports[-1].outputs
  with tf.device(stages[-1].device):
    weight = sums.loss.weight
    total = sums.loss.total
    for aux_loss in reported['aux_losses'].values():
      total += tf.cast(aux_loss, total.dtype)
    scale = tf.math.divide_no_nan(tf.ones_like(weight), weight)
    gradients = replicas.SumGradients(
      [
        shared_weights.GradientTree(
          [traced.stage for traced in functions], result.gradients, lenders
        )
        for functions, result in zip(pipelines, results, strict=True)
      ],
      variables,
      scale,
    )
    return NestedMap(
      loss=total * scale,
      metrics=sums,
      grads=NestedMap(cells=gradients),
      statistics=reported['statistics'],
      aux_losses={
        name: metrics.WeightedSum(value, tf.cast(weight, value.dtype)).Mean()
        for name, value in reported['aux_losses'].items()
      },
      cell_metrics=reported['metrics'],
      times=results[0].times,
    )
