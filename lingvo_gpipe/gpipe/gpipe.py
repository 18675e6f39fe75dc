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

import contextlib
import dataclasses
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
  failure,
  forward_loop,
  gpipe_params,
  loop,
  loop_table,
  micro_batch,
  ordering,
  partition,
  placement,
  plan_search,
  profile_cells,
  schedule,
  schedule_table,
  shared_weights,
  skip_connections,
  stage_functions,
)
from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
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
    gpipe_params.Define(p)
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    gpipe_params.Check(p, self.path)
    partition.CheckNumPartitions(self.num_partitions, len(p.cells))
    self.CreateChildren('cells', list(p.cells))
    last = self.cells[-1]
    weighs = last.WEIGHS_EXAMPLES or p.weights_field in last.BATCH_FIELDS
    if p.pad_batches and not weighs:
      raise ValueError(
        f'{self.path}: pad_batches needs a last cell that weighs examples, '
        f'but {last.path} does not read the field {p.weights_field!r} '
        '(BATCH_FIELDS), nor example_weights (WEIGHS_EXAMPLES)'
      )
    skip_connections.Check(self.cells)
    self._lenders = shared_weights.Find(self.cells)
    self._traced: dict[str, list[stage_functions.StageFunctions]] = {}
    self._cell_times: list[partition.CellTime] = []
    self._plan: plan_lib.PipelinePlan | None = None

  @property
  def num_devices(self) -> int:
    """How many devices the partitions are put on."""
    return self.num_partitions // self.params.num_chunks

  @property
  def num_partitions(self) -> int:
    """K, or K x V in the interleaved schedule."""
    return gpipe_params.NumPartitions(self.params)

  # Planning.

  def Plan(
    self,
    batch_spec: NestedMap,
    devices: list[str] | None = None,
    state_bytes: list[int] | None = None,
  ) -> plan_lib.PipelinePlan:
    """Cuts the cells into partitions and gives each a device.

    Takes no memory: cells are traced on abstract inputs.

    Args:
      batch_spec: NestedMap of TensorSpecs (or tensors) of the mini-batch,
        [batch, ...].
      devices: one for each partition (for each K, where num_chunks is set);
        None takes this process's logical devices.
      state_bytes: of each cell, what training adds to its variables (the
        optimizer's slots, averages), for the count of memory; None: nothing.

    Returns:
      The plan, kept in `self.plan`.

    Raises:
      ValueError: where the batch can't be split, there are fewer devices than
        partitions, a cell doesn't accept what the one before it returns, or no
        cut keeps to device_memory.
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
    shared = shared_weights.Specs(self._lenders, self.cells)
    costs = cost.CountCells(
      self.cells, self._Inputs(micro_spec), micro_spec, shared
    )
    if devices is None:
      devices = placement.LocalDevices(
        self.num_partitions, partitions_per_device=p.num_chunks
      )
    devices = placement.CheckDevices(devices, self.num_partitions, p.num_chunks)
    self._cell_times = [
      partition.CellTime(c.forward_flops, c.backward_flops) for c in costs
    ]
    transfer_cost = p.transfer_cost
    if p.profile_cells:
      counted = self._cell_times
      self._cell_times = profile_cells.Measure(
        self.cells, self.FromInputs(micro_spec), micro_spec, shared, devices[0]
      )
      # To seconds, by what the device is capable of: its fastest cell.
      transfer_cost *= min(
        sum(seconds) / max(sum(flops), 1.0)
        for seconds, flops in zip(self._cell_times, counted, strict=True)
      )
    self._plan = plan_lib.MakePlan(
      costs,
      num_partitions=self.num_partitions,
      splits=p.splits,
      devices=devices,
      schedule=p.schedule,
      num_devices=self.num_devices,
      num_micro_batches=num_micro_batches,
      micro_batch_size=micro_batch.Size(batch_size, num_micro_batches),
      rematerialize=p.rematerialize,
      demands=plan_search.Demands(
        balance=p.balance,
        device_memory=p.device_memory,
        field_bytes={
          name: micro_batch.Bytes(spec) for name, spec in micro_spec.items()
        },
        state_bytes=state_bytes,
        transfer_cost=transfer_cost,
        times=self._cell_times if p.profile_cells else None,
      ),
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

  @property
  def cell_times(self) -> list[partition.CellTime]:
    """The work of each cell that the plan was made with.

    In FLOPs, or with `profile_cells` in seconds.
    """
    return list(self._cell_times)

  def _NumMicroBatches(self, batch_size: int) -> int:
    p = self.params
    return num_micro_batches_lib.ChooseNumMicroBatches(
      batch_size,
      self.num_partitions,
      num_micro_batches=p.num_micro_batches,
      micro_batch_size=p.micro_batch_size,
      padded=p.pad_batches,
    )

  def _Inputs(self, batch: NestedMap) -> Any:
    name = self.params.input_field
    if name not in batch:
      raise ValueError(
        f'{self.path}: the batch has no field {name!r} for the first cell; it '
        f'has {sorted(batch)} (param "input_field")'
      )
    return tf.nest.map_structure(self._ToFPropDtype, batch[name])

  def FromInputs(self, micro_spec: NestedMap) -> stage_lib.OnTheWay:
    """The specs that the first stage receives."""
    return stage_lib.OnTheWay(stage_lib.Carried(self._Inputs(micro_spec), {}))

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

  def Stages(self) -> list[stage_lib.Stage]:
    """The partitions of the plan: cells and devices."""
    return [
      stage_lib.Stage(k, s.start, tuple(self.cells[s.start : s.end]), s.device)
      for k, s in enumerate(self.plan.stages)
    ]

  def InstantiateVariables(self) -> None:
    """Creates every cell's variables on the device of its partition."""
    for stage in self.Stages():
      with tf.device(stage.device):
        for cell in stage.cells:
          cell.InstantiateVariables()
    self._vars = NestedMap(cells=[cell.vars for cell in self.cells])

  # Computing.

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
    self._CheckBatchFields(batch)
    stages = self.Stages()
    num_micro_batches = num_micro_batches_lib.NearestNumMicroBatches(
      micro_batch.BatchSize(batch), self.plan.num_micro_batches
    )
    micro_spec = micro_batch.MicroSpecs(
      micro_batch.Specs(batch), num_micro_batches
    )
    on_the_way = self.FromInputs(micro_spec)
    shared = shared_weights.Specs(self._lenders, self.cells)
    for stage in stages:
      traced = stage.Trace(
        on_the_way.Receive(stage), micro_spec, do_eval=True, shared=shared
      )
      on_the_way.Send(traced.carried)
    split = micro_batch.Split(batch, num_micro_batches)
    return forward_loop.Run(
      stages,
      [
        shared_weights.ThetaOf(stage, theta.cells, self._lenders)
        for stage in stages
      ],
      [_Fields(stage, split) for stage in stages],
      self._FirstInputs(stages[0], split),
      num_micro_batches,
      spec=on_the_way.carried.outputs,
      global_step=context.global_step,
    )

  def NamedFailures(self) -> contextlib.AbstractContextManager:
    """Within it, an error at run time gains a note that names the cell."""
    return failure.Named(self.Stages())

  def _FirstInputs(self, stage: stage_lib.Stage, split: NestedMap) -> Any:
    with tf.device(stage.device):
      return ordering.Identity(self._Inputs(split))

  def _StageFunctions(
    self, micro_spec: NestedMap, padded_from: tuple[int, int] | None
  ) -> list[stage_functions.StageFunctions]:
    """Traces every stage's passes, once for each kind of micro-batch."""
    key = repr((micro_spec, padded_from))
    if key not in self._traced:
      self._CheckNumShapes(micro_spec)
      functions = []
      on_the_way = self.FromInputs(micro_spec)
      shared = shared_weights.Specs(self._lenders, self.cells)
      stages = self.Stages()
      jit_compile = gpipe_params.JitCompile(self.params)
      for k, (stage, planned) in enumerate(
        zip(stages, self.plan.stages, strict=True)
      ):
        traced = stage_functions.StageFunctions(
          dataclasses.replace(stage, padded_from=padded_from),
          on_the_way.Receive(stage),
          micro_spec,
          policy=planned.rematerialize,
          num_stages=len(stages),
          shared=shared,
          jit_compile=jit_compile[k],
        )
        functions.append(traced)
        on_the_way.Send(traced.spec.carried)
      self._traced[key] = functions
    return self._traced[key]

  def _CheckNumShapes(self, micro_spec: NestedMap) -> None:
    """Each kind of micro-batch costs seconds of tracing, and memory."""
    limit = self.params.max_batch_shapes
    if len(self._traced) >= limit:
      raise ValueError(
        f'{self.path}: mini-batches have come in max_batch_shapes={limit} '
        f'shapes, and now in another one, {micro_spec}; pad sequences to fewer '
        'lengths (buckets), or raise max_batch_shapes'
      )

  def _WeighPadding(
    self, split: NestedMap, padded_from: tuple[int, int]
  ) -> None:
    """Sets the weights of rows that only fill up to zero."""
    name = self.params.weights_field
    if name not in split:
      return
    weights = split[name]
    mask = micro_batch.Mask(
      *padded_from, tf.range(padded_from[1]), weights.dtype
    )
    ones = [1] * (weights.shape.rank - 2)
    split[name] = weights * tf.reshape(mask, [*mask.shape, *ones])

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
        cell_metrics: {name: WeightedSum} that cells report (AddMetric).
        times: see loop.LoopResult.
    """
    batch = NestedMap(batch)
    self._CheckBatchFields(batch)
    batch_size = micro_batch.BatchSize(batch)
    num_micro_batches = self._NumMicroBatches(batch_size)
    split = micro_batch.Split(batch, num_micro_batches)
    padded_from = None
    if batch_size % num_micro_batches:
      padded_from = batch_size, num_micro_batches
      self._WeighPadding(split, padded_from)
    functions = self._StageFunctions(
      micro_batch.MicroSpecs(micro_batch.Specs(batch), num_micro_batches),
      padded_from,
    )
    stages = [traced.stage for traced in functions]
    theta, data = self.theta, []
    for stage in stages:
      with tf.device(stage.device):
        data.append(
          loop.StageData(
            theta=shared_weights.ThetaOf(stage, theta.cells, self._lenders),
            gradients=shared_weights.GradientSpecs(
              stage, self.cells, self._lenders
            ),
            batch=_Fields(stage, split),
            global_step=tf.identity(tf.cast(global_step, tf.int64)),
          )
        )
    training_loop = loop.TrainingLoop(
      functions,
      data,
      self._FirstInputs(stages[0], split),
      loop_table.MakeLoopTable(self._Schedule(num_micro_batches)),
    )
    with failure.Named(stages):
      result = training_loop.Run()

    reported = {'statistics': {}, 'aux_losses': {}, 'metrics': {}}
    for reports in result.reports:
      for kind, merged in reported.items():
        merged.update(reports[kind])
    sums = result.reports[-1].outputs
    with tf.device(stages[-1].device):
      weight = sums.loss.weight
      total = sums.loss.total
      for aux_loss in reported['aux_losses'].values():
        total += tf.cast(aux_loss, total.dtype)
      scale = tf.math.divide_no_nan(tf.ones_like(weight), weight)
      return NestedMap(
        loss=total * scale,
        metrics=sums,
        grads=NestedMap(
          cells=shared_weights.GradientTree(
            stages, result.gradients, self._lenders, scale
          )
        ),
        statistics=reported['statistics'],
        aux_losses={
          name: metrics.WeightedSum(value, tf.cast(weight, value.dtype)).Mean()
          for name, value in reported['aux_losses'].items()
        },
        cell_metrics=reported['metrics'],
        times=result.times,
      )

  def _Schedule(self, num_micro_batches: int) -> schedule_table.Schedule:
    p = self.params
    return schedule.MakeSchedule(
      p.schedule, self.num_partitions, num_micro_batches, self.num_devices
    )

  def ApplyStatistics(self, statistics: dict[str, NestedMap]) -> None:
    """Hands the summed statistics of a mini-batch to the layers they are of.

    Args:
      statistics: of ComputeGradients, {layer path: what the layer reported}.
    """
    for stage in self.Stages():
      with tf.device(stage.device):
        for cell in stage.cells:
          for layer in cell.Descendants():
            if layer.path in statistics:
              layer.ApplyStatistics(statistics[layer.path])


def _Fields(stage: stage_lib.Stage, split: NestedMap) -> NestedMap:
  """The batch fields of a stage, on its device."""
  with tf.device(stage.device):
    return NestedMap(
      {name: ordering.Identity(split[name]) for name in stage.batch_fields}
    )
