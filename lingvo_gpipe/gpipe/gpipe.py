"""The GPipe layer: a list of cells, K partitions, M micro-batches.

  net = gpipe.GPipe.Params().Set(
      name='net', cells=[...], num_partitions=2, num_micro_batches=8
  ).Instantiate()
  net.Plan(batch_spec)          # cuts the cells by their counted cost
  net.InstantiateVariables()    # each on its partition's device
  result = net.ComputeGradients(batch, global_step)

Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline
Parallelism (arXiv 1811.06965). Loss and gradients are those of the same cells
run one after the other, whatever K is; M matters only where a cell looks at its
micro-batch as a whole (batch norm) or draws random numbers (dropout).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import (
  base_layer,
  fprop_context,
  hyperparams,
  metrics,
  nested_map,
)
from lingvo_gpipe.gpipe import (
  cost,
  loop,
  micro_batch,
  partition,
  placement,
  schedule,
)
from lingvo_gpipe.gpipe import plan as plan_lib
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


class GPipe(base_layer.BaseLayer):
  """A sequence of cells, trained and evaluated through a pipeline.

  Cell 0 receives the batch's field `input_field`; every other cell receives
  what the cell before it returned: a tensor, a tuple or a NestedMap, None and
  integers included. The last cell returns a NestedMap with `loss`, a
  metrics.WeightedSum, and further metrics; in a pipeline that is never trained
  it may return anything.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('cells', [], 'Params of the cells, from the first to the last.')
    p.Define('num_partitions', 1, 'K, how many parts the cells are cut into.')
    p.Define(
      'splits',
      None,
      'The cut by hand: number of cells of each partition, or names of the '
      'last cell of each. None: the best cut by the cost of the cells.',
    )
    p.Define(
      'num_micro_batches',
      None,
      'M, how many micro-batches a mini-batch is split into. None: 4K as the '
      "paper advises, or what is nearest and divides the mini-batch's size.",
    )
    p.Define(
      'micro_batch_size',
      None,
      'Examples in a micro-batch, another way to say num_micro_batches.',
    )
    p.Define(
      'rematerialize',
      'partition',
      "What is recomputed in the backward pass: 'partition', all of a "
      'partition from its inputs.',
    )
    p.Define('input_field', 'inputs', "The batch's field that cell 0 receives.")
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if not p.cells:
      raise ValueError(f'{self.path}: its param "cells" is empty')
    if p.num_micro_batches is not None and p.micro_batch_size is not None:
      raise ValueError(
        f'{self.path}: set num_micro_batches={p.num_micro_batches} or '
        f'micro_batch_size={p.micro_batch_size}, not both'
      )
    if p.rematerialize != 'partition':
      raise ValueError(
        f"{self.path}: rematerialize={p.rematerialize!r} is not 'partition'"
      )
    if p.splits is not None and not len(p.splits):
      raise ValueError(
        f'{self.path}: splits is empty; give the number of cells, or the last '
        'cell, of each partition, or None for the best cut'
      )
    if p.splits is not None and p.num_partitions not in (1, len(p.splits)):
      raise ValueError(
        f'{self.path}: splits={list(p.splits)} makes {len(p.splits)} '
        f'partitions, but num_partitions={p.num_partitions} '
        '(--worker_split_size); set only one of the two'
      )
    partition.CheckNumPartitions(self.num_partitions, len(p.cells))
    self.CreateChildren('cells', list(p.cells))
    self._plan: plan_lib.PipelinePlan | None = None

  @property
  def num_partitions(self) -> int:
    """K."""
    p = self.params
    return p.num_partitions if p.splits is None else len(p.splits)

  # Planning.

  def Plan(
    self, batch_spec: NestedMap, devices: list[str] | None = None
  ) -> plan_lib.PipelinePlan:
    """Cuts the cells into partitions and gives each a device.

    Takes no memory: cells are traced on abstract inputs.

    Args:
      batch_spec: NestedMap of TensorSpecs (or tensors) of the mini-batch,
        [batch, ...].
      devices: of the partitions; None takes this process's logical devices.

    Returns:
      The plan, kept in `self.plan`.

    Raises:
      ValueError: where the batch can't be split, there are fewer devices than
        partitions, or a cell doesn't accept what the one before it returns.
    """
    if self._vars is not None:
      raise RuntimeError(
        f'{self.path}: plan before InstantiateVariables, which puts the '
        'variables on the devices of the plan'
      )
    p = self.params
    batch_spec = micro_batch.Specs(NestedMap(batch_spec))
    batch_size = micro_batch.BatchSize(batch_spec)
    num_micro_batches = self._NumMicroBatches(batch_size)
    micro_spec = micro_batch.MicroSpecs(batch_spec, num_micro_batches)
    costs = cost.CountCells(self.cells, self._Inputs(micro_spec), micro_spec)
    if devices is None:
      devices = placement.LocalDevices(self.num_partitions)
    devices = placement.CheckDevices(devices, self.num_partitions)
    self._plan = plan_lib.MakePlan(
      costs,
      num_partitions=self.num_partitions,
      splits=p.splits,
      devices=devices,
      num_micro_batches=num_micro_batches,
      micro_batch_size=batch_size // num_micro_batches,
      rematerialize=p.rematerialize,
    )
    return self._plan

  @property
  def plan(self) -> plan_lib.PipelinePlan:
    """What Plan decided."""
    if self._plan is None:
      raise RuntimeError(
        f'{self.path}: call Plan(batch_spec) first; it decides which cells go '
        'to which device'
      )
    return self._plan

  def _NumMicroBatches(self, batch_size: int) -> int:
    p = self.params
    return schedule.ChooseNumMicroBatches(
      batch_size,
      self.num_partitions,
      num_micro_batches=p.num_micro_batches,
      micro_batch_size=p.micro_batch_size,
    )

  def _Inputs(self, batch: NestedMap) -> Any:
    name = self.params.input_field
    if name not in batch:
      raise ValueError(
        f'{self.path}: the batch has no field {name!r} for the first cell; it '
        f'has {sorted(batch)} (param "input_field")'
      )
    return tf.nest.map_structure(self._ToFPropDtype, batch[name])

  def _ToFPropDtype(self, x: Any) -> Any:
    """Floating data, or its spec, in the dtype of the computation."""
    if x is None or not x.dtype.is_floating:
      return x
    if isinstance(x, tf.TensorSpec):
      return tf.TensorSpec(x.shape, self.fprop_dtype)
    return tf.cast(x, self.fprop_dtype)

  def _CheckBatchFields(self, batch: NestedMap) -> None:
    for cell in self.cells:
      missing = sorted(set(cell.BATCH_FIELDS) - set(batch))
      if missing:
        raise ValueError(
          f'{cell.path} asks for the batch fields {", ".join(missing)} '
          f'(BATCH_FIELDS), but the batch has {", ".join(sorted(batch))}'
        )

  def _Stages(self) -> list[stage_lib.Stage]:
    return [
      stage_lib.Stage(k, s.start, tuple(self.cells[s.start : s.end]), s.device)
      for k, s in enumerate(self.plan.stages)
    ]

  def InstantiateVariables(self) -> None:
    """Creates every cell's variables on the device of its partition."""
    for stage in self._Stages():
      with tf.device(stage.device):
        for cell in stage.cells:
          cell.InstantiateVariables()
    self._vars = NestedMap(cells=[cell.vars for cell in self.cells])

  # Computing.

  def _Pipeline(
    self,
    theta: NestedMap,
    batch: NestedMap,
    num_micro_batches: int,
    *,
    do_eval: bool,
    global_step: Any,
  ) -> loop.Pipeline:
    """Splits the batch, sends each stage its fields, traces the borders."""
    self._CheckBatchFields(batch)
    split = micro_batch.Split(batch, num_micro_batches)
    micro_spec = micro_batch.MicroSpecs(
      micro_batch.Specs(batch), num_micro_batches
    )
    stages, data = self._Stages(), []
    inputs_spec = self._Inputs(micro_spec)
    for stage in stages:
      spec = stage.Trace(inputs_spec, micro_spec, do_eval=do_eval)
      end = stage.first_cell + len(stage.cells)
      with tf.device(stage.device):
        fields = NestedMap(
          {
            name: tf.nest.map_structure(tf.identity, split[name])
            for name in stage.batch_fields
          }
        )
      data.append(
        loop.StageData(
          theta=theta.cells[stage.first_cell : end],
          variables=tf.nest.flatten([c.VariableSpecs() for c in stage.cells]),
          batch=fields,
          spec=spec,
        )
      )
      inputs_spec = spec.outputs
    with tf.device(stages[0].device):
      inputs = tf.nest.map_structure(tf.identity, self._Inputs(split))
    return loop.Pipeline(stages, data, inputs, num_micro_batches, global_step)

  @tf.autograph.experimental.do_not_convert
  def FProp(self, theta: NestedMap, batch: NestedMap) -> Any:
    """The forward pipeline: evaluation and prediction.

    The batch may have another size than the one planned for; it is then split
    into the number of micro-batches nearest to the planned one.

    Args:
      theta: values of the variables.
      batch: NestedMap of tensors [batch, ...].

    Returns:
      The last cell's outputs: WeightedSums summed over the micro-batches, other
      tensors put together again, [batch, ...].
    """
    context = fprop_context.Current()
    if not context.do_eval:
      raise ValueError(
        f'{self.path}: FProp is for evaluation and would lose what layers '
        'report in training; use ComputeGradients, or '
        'FPropContext(do_eval=True)'
      )
    batch = NestedMap(batch)
    pipeline = self._Pipeline(
      theta,
      batch,
      schedule.NearestNumMicroBatches(
        micro_batch.BatchSize(batch), self.plan.num_micro_batches
      ),
      do_eval=True,
      global_step=context.global_step,
    )
    return pipeline.ForwardOnlyLoop()

  @tf.autograph.experimental.do_not_convert
  def ComputeGradients(self, batch: NestedMap, global_step: Any) -> NestedMap:
    """Loss and gradients of one mini-batch.

    The objective is (sum of losses + sum of auxiliary losses) / sum of weights,
    each sum over the whole mini-batch.

    Args:
      batch: NestedMap of tensors [batch, ...].
      global_step: int64 scalar, seeds the step's random numbers.

    Returns:
      A NestedMap of
        loss: scalar, the objective.
        metrics: NestedMap of the last cell's WeightedSums, `loss` among them.
        grads: gradients of the objective, a tree like `self.vars` with None for
          variables that are not trainable, each on its variable's device.
        statistics: for ApplyStatistics.
        aux_losses: {name: scalar}, their shares of the objective.
    """
    batch = NestedMap(batch)
    pipeline = self._Pipeline(
      self.theta,
      batch,
      self._NumMicroBatches(micro_batch.BatchSize(batch)),
      do_eval=False,
      global_step=global_step,
    )
    pipeline.CheckTrainable()
    received, reports = pipeline.ForwardLoop()
    gradients, sums, last_reports = pipeline.BackwardLoop(received)
    reports.append(last_reports)

    statistics, aux_losses = {}, {}
    for report in reports:
      statistics.update(report.statistics)
      aux_losses.update(report.aux_losses)
    stages = self._Stages()
    with tf.device(stages[-1].device):
      weight = sums.loss.weight
      total = sums.loss.total
      for aux_loss in aux_losses.values():
        total += tf.cast(aux_loss, total.dtype)
      scale = tf.math.divide_no_nan(tf.ones_like(weight), weight)
      return NestedMap(
        loss=total * scale,
        metrics=sums,
        grads=self._GradientTree(stages, gradients, scale),
        statistics=statistics,
        aux_losses={
          name: metrics.WeightedSum(value, tf.cast(weight, value.dtype)).Mean()
          for name, value in aux_losses.items()
        },
      )

  def _GradientTree(self, stages, gradients, scale) -> NestedMap:
    """Scaled gradients as a tree like `vars`, None where not trainable."""
    tree = NestedMap(cells=[])
    for stage, flat in zip(stages, gradients, strict=True):
      rest = iter(flat)
      with tf.device(stage.device):
        for cell in stage.cells:
          tree.cells.append(
            tf.nest.map_structure(
              lambda spec: (
                _Scale(next(rest), scale) if spec.trainable else None  # noqa: B023
              ),
              cell.VariableSpecs(),
            )
          )
    return tree

  def ApplyStatistics(self, statistics: dict[str, NestedMap]) -> None:
    """Hands the summed statistics of a mini-batch to the layers they are of.

    Args:
      statistics: of ComputeGradients, {layer path: what the layer reported}.
    """
    for stage in self._Stages():
      with tf.device(stage.device):
        for cell in stage.cells:
          for layer in cell.Descendants():
            if layer.path in statistics:
              layer.ApplyStatistics(statistics[layer.path])


def _Scale(gradient: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
  return gradient * tf.cast(scale, gradient.dtype)
