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
micro-batch as a whole (batch norm) or draws random numbers (dropout). R
replicas of the pipeline may share a mini-batch (replicas.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import (
  base_layer,
  fprop_context,
  hyperparams,
  nested_map,
)
from lingvo_gpipe.gpipe import (
  division,
  failure,
  feeding,
  forward_loop,
  gpipe_params,
  loop,
  loop_data,
  micro_batch,
  placement,
  reduction,
  replicas,
  shared_weights,
  skip_connections,
  stage_functions,
)
from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.planning import (
  cost,
  partition,
  plan_search,
  profile_cells,
)
from lingvo_gpipe.gpipe.planning import plan as plan_lib
from lingvo_gpipe.gpipe.schedules import loop_table, schedule, schedule_table

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
    self.feeding = feeding.Feeding(
      self.path, self.cells, p.input_field, p.weights_field, self.fprop_dtype
    )
    self._lenders = shared_weights.Find(self.cells)
    self._traced: dict[str, list[list[stage_functions.StageFunctions]]] = {}
    self._cell_times: list[partition.CellTime] = []
    self._plan: plan_lib.PipelinePlan | None = None

  @property
  def num_devices(self) -> int:
    """How many devices the partitions of all replicas are put on."""
    return self.params.num_replicas * self._devices_per_replica

  @property
  def _devices_per_replica(self) -> int:
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
      devices: one for each partition (for each K, where num_chunks is set),
        replica after replica; None takes this process's logical devices.
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
    divided = self.Divide(batch_spec)
    micro_spec = divided.MicroSpecs(batch_spec)
    shared = shared_weights.Specs(self._lenders, self.cells)
    costs = cost.CountCells(
      self.cells, self.feeding.Inputs(micro_spec), micro_spec, shared
    )
    if devices is None:
      devices = placement.LocalDevices(
        self.num_partitions,
        partitions_per_device=p.num_chunks,
        num_replicas=p.num_replicas,
      )
    replica_devices = placement.ReplicaDevices(
      devices, p.num_replicas, self.num_partitions, p.num_chunks
    )
    self._cell_times = [
      partition.CellTime(c.forward_flops, c.backward_flops) for c in costs
    ]
    transfer_cost = p.transfer_cost
    if p.profile_cells:
      counted = self._cell_times
      self._cell_times = profile_cells.Measure(
        self.cells,
        self.feeding.FirstSpecs(micro_spec),
        micro_spec,
        shared,
        replica_devices[0][0],
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
      replica_devices=replica_devices,
      schedule=p.schedule,
      num_devices=self._devices_per_replica,
      num_micro_batches=divided.num_micro_batches,
      micro_batch_size=divided.micro_batch_size,
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

  def Divide(self, batch: NestedMap) -> division.Division:
    """How training divides a mini-batch.

    Args:
      batch: NestedMap of tensors or TensorSpecs [batch, ...].

    Returns:
      The Division among replicas and micro-batches.
    """
    p = self.params
    batch_size = micro_batch.BatchSize(batch)
    num_micro_batches = num_micro_batches_lib.ChooseNumMicroBatches(
      batch_size,
      self.num_partitions,
      num_micro_batches=p.num_micro_batches,
      micro_batch_size=p.micro_batch_size,
      num_replicas=p.num_replicas,
      padded=p.pad_batches,
    )
    return division.Division(batch_size, p.num_replicas, num_micro_batches)

  def Stages(self, replica: int = 0) -> list[stage_lib.Stage]:
    """The partitions of the plan: cells and devices.

    Args:
      replica: which one's devices; replica 0 is the one that evaluates.

    Returns:
      The stages.
    """
    devices = self.plan.replica_devices[replica]
    return [
      stage_lib.Stage(
        k,
        s.start,
        tuple(self.cells[s.start : s.end]),
        device,
        replica=replica,
      )
      for k, (s, device) in enumerate(
        zip(self.plan.stages, devices, strict=True)
      )
    ]

  def _AllStages(self) -> list[stage_lib.Stage]:
    """The stages of all replicas."""
    return [s for r in range(self.params.num_replicas) for s in self.Stages(r)]

  def InstantiateVariables(
    self, devices: Mapping[str, str] | None = None
  ) -> None:
    """Creates every cell's variables on a device of its partition.

    Args:
      devices: not used; the plan tells them.
    """
    del devices
    for k, stage in enumerate(self.Stages()):
      of_stage = replicas.VariableDevices(
        stage, [of_replica[k] for of_replica in self.plan.replica_devices]
      )
      with tf.device(stage.device):
        for cell in stage.cells:
          cell.InstantiateVariables(of_stage)
    self._vars = NestedMap(cells=[cell.vars for cell in self.cells])

  # Computing.

  @tf.autograph.experimental.do_not_convert
  def FProp(self, theta: NestedMap, batch: NestedMap) -> Any:
    """The forward pipeline: evaluation and prediction.

    The batch may have another size than the one planned for; it is then split
    into the number of micro-batches nearest to the planned one. Replica 0 runs
    it all, with micro-batches of about the size of those of training.

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
    self.feeding.CheckFields(batch)
    stages = self.Stages()
    batch_size = micro_batch.BatchSize(batch)
    num_micro_batches = num_micro_batches_lib.NearestNumMicroBatches(
      batch_size, self.params.num_replicas * self.plan.num_micro_batches
    )
    divided = division.Division(batch_size, 1, num_micro_batches)
    micro_spec = divided.MicroSpecs(batch)
    on_the_way = self.feeding.FirstSpecs(micro_spec)
    shared = shared_weights.Specs(self._lenders, self.cells)
    for stage in stages:
      traced = stage.Trace(
        on_the_way.Receive(stage), micro_spec, do_eval=True, shared=shared
      )
      on_the_way.Send(traced.carried)
    return forward_loop.Run(
      stages,
      [
        shared_weights.ThetaOf(stage, theta.cells, self._lenders)
        for stage in stages
      ],
      [self.feeding.Fields(stage, divided, batch) for stage in stages],
      self.feeding.FirstInputs(stages[0], divided, batch),
      num_micro_batches,
      spec=on_the_way.carried.outputs,
      global_step=context.global_step,
    )

  def NamedFailures(self) -> contextlib.AbstractContextManager:
    """Within it, an error at run time gains a note that names the cell."""
    return failure.Named(self._AllStages())

  def _StageFunctions(
    self, micro_spec: NestedMap, padded_from: tuple[int, int] | None
  ) -> list[list[stage_functions.StageFunctions]]:
    """Traces each replica's passes, once for each kind of micro-batch."""
    key = repr((micro_spec, padded_from))
    if key not in self._traced:
      self._CheckNumShapes(micro_spec)
      self._traced[key] = [
        stage_functions.TraceAll(
          [
            dataclasses.replace(stage, padded_from=padded_from)
            for stage in self.Stages(replica)
          ],
          self.feeding.FirstSpecs(micro_spec),
          micro_spec,
          policies=[planned.rematerialize for planned in self.plan.stages],
          shared=shared_weights.Specs(self._lenders, self.cells),
          jit_compile=gpipe_params.JitCompile(self.params),
        )
        for replica in range(self.params.num_replicas)
      ]
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
        times: of replica 0, see loop_data.LoopResult.
    """
    batch = NestedMap(batch)
    self.feeding.CheckFields(batch)
    divided = self.Divide(batch)
    pipelines = self._StageFunctions(
      divided.MicroSpecs(batch), divided.padded_from
    )
    theta = self.theta
    loops = [
      self._Loop(
        functions, divided, divided.Rows(batch, r), theta.cells, global_step
      )
      for r, functions in enumerate(pipelines)
    ]
    with self.NamedFailures():
      results = loop.RunTogether(loops)
    return reduction.Reduce(pipelines, results, self.vars.cells, self._lenders)

  def _Loop(
    self,
    functions: list[stage_functions.StageFunctions],
    divided: division.Division,
    rows: NestedMap,
    theta: list[NestedMap],
    global_step: Any,
  ) -> loop.TrainingLoop:
    """The micro-batch loop of one replica, on its rows."""
    data = []
    for traced in functions:
      stage = traced.stage
      with tf.device(stage.device):
        data.append(
          loop_data.StageData(
            theta=shared_weights.ThetaOf(stage, theta, self._lenders),
            gradients=shared_weights.GradientSpecs(
              stage, self.cells, self._lenders
            ),
            batch=self.feeding.Fields(stage, divided, rows),
            global_step=tf.identity(tf.cast(global_step, tf.int64)),
            first_micro_batch=stage.replica * divided.num_micro_batches,
          )
        )
    return loop.TrainingLoop(
      functions,
      data,
      self.feeding.FirstInputs(functions[0].stage, divided, rows),
      loop_table.MakeLoopTable(self._Schedule(divided.num_micro_batches)),
    )

  def _Schedule(self, num_micro_batches: int) -> schedule_table.Schedule:
    p = self.params
    return schedule.MakeSchedule(
      p.schedule,
      self.num_partitions,
      num_micro_batches,
      self._devices_per_replica,
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
