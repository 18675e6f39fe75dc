"""What a forward pass knows beside its weights and inputs, and what it reports.

`FProp(theta, inputs)` is a pure function, yet dropout needs to know the step,
batch norm the mode, and both auxiliary losses and statistics have to leave a
deeply nested layer. All of that goes through one explicit object:

  with FPropContext(do_eval=False, global_step=step, micro_batch=i) as context:
    outputs = cell.FProp(theta, inputs)
  # context.statistics, context.aux_losses: what the layers reported.

The caller decides what becomes of the reports. GPipe's loops sum those of the
forward pass and drop those of the re-materialization, so nothing counts twice.
"""

from __future__ import annotations

import threading
from typing import Any

import tensorflow as tf

from lingvo_gpipe import metrics, nested_map

_local = threading.local()


class FPropContext:
  """The surroundings of a forward pass; a context manager, nestable.

  Attributes:
    do_eval: True in evaluation: no dropout, batch norm by moving moments.
    global_step: int64 scalar (tensor or int), the step of the run.
    micro_batch: int64 scalar (tensor or int), index within the mini-batch.
    stashed: {name: nest} of skip connections that have begun and not ended.
    shared_weights: {name: tensor} of other cells' weights.
    example_weights: [micro_batch], 1 for examples and 0 for what only fills up
      the micro-batch; None where all are examples.
    statistics: {layer path: NestedMap of tensors} reported so far.
    aux_losses: {layer path + '/' + name: scalar total} reported so far.
    metrics: {layer path + '/' + name: WeightedSum} reported so far.
  """

  def __init__(
    self,
    *,
    do_eval: bool,
    global_step: Any = 0,
    micro_batch: Any = 0,
    stashed: dict[str, Any] | None = None,
    shared_weights: dict[str, tf.Tensor] | None = None,
    example_weights: tf.Tensor | None = None,
  ):
    self.do_eval = do_eval
    self.global_step = global_step
    self.micro_batch = micro_batch
    self.stashed = dict(stashed or {})
    self.shared_weights = dict(shared_weights or {})
    self.example_weights = example_weights
    self.metrics: dict[str, metrics.WeightedSum] = {}
    self.statistics: dict[str, nested_map.NestedMap] = {}
    self.aux_losses: dict[str, tf.Tensor] = {}

  def __enter__(self) -> FPropContext:
    _Stack().append(self)
    return self

  def __exit__(self, *unused_exc):
    _Stack().pop()

  def AddStatistics(self, path: str, values: nested_map.NestedMap) -> None:
    """Adds a layer's statistics; a layer that runs twice reports the sum."""
    if path in self.statistics:
      values = tf.nest.map_structure(tf.add, self.statistics[path], values)
    self.statistics[path] = values

  def AddAuxLoss(self, path: str, total: tf.Tensor) -> None:
    """Adds to an auxiliary loss; see BaseLayer.AddAuxLoss."""
    if path in self.aux_losses:
      total = self.aux_losses[path] + total
    self.aux_losses[path] = total

  def AddMetric(self, path: str, value: metrics.WeightedSum) -> None:
    """Adds to a metric; see BaseLayer.AddMetric."""
    if path in self.metrics:
      value = tf.nest.map_structure(tf.add, self.metrics[path], value)
    self.metrics[path] = value


def _Stack() -> list[FPropContext]:
  if not hasattr(_local, 'stack'):
    _local.stack = []
  return _local.stack


def Current() -> FPropContext:
  """The innermost context; outside of any, a fresh one for evaluation."""
  stack = _Stack()
  return stack[-1] if stack else FPropContext(do_eval=True)
