"""The plan of a pipeline: which cells go where, and what to expect of it.

`MakePlan` is a pure function of the cells' costs and a few options. Its result
is plain data that prints as a table (`ToText`) and as JSON (`ToJson`).

The cut. `partition.Partition` balances a cost. If forward and backward passes
of a device alternate, its work for a micro-batch counts: F + F + B where it
re-materializes, F + B on the last partition. With few micro-batches, filling
and draining count as well, and equal F + B can be better. So both cuts are
made, a step of each is played through the schedule's table, and the faster one
is taken. Outputs that need longer to the next device than their partition to be
computed set the pace as well.

Memory. What a partition takes of its device is counted (partition_memory.py).
With `device_memory` only cuts count that fit, and the policy 'auto' lets a
partition compute again no more than that demands: 'none' if it fits, then
'partition', then 'cell'. With balance='memory' the cut is the one whose largest
partition takes the least memory, whatever time it takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
from lingvo_gpipe.gpipe.planning import (
  partition,
  plan_search,
  plan_text,
  policies,
)
from lingvo_gpipe.gpipe.planning import splits as splits_lib
from lingvo_gpipe.gpipe.schedules import schedule as schedule_lib

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe.planning import cost


@dataclasses.dataclass(frozen=True)
class PartitionPlan:
  """One partition; bytes and FLOPs are those of all its cells.

  Attributes:
    start: index of its first cell.
    end: index after its last cell.
    first_cell: name.
    last_cell: name.
    device: device string.
    rematerialize: policy, one of policies.REMATERIALIZE.
    params: trainable parameters.
    param_bytes: of all variables.
    forward_flops: for one micro-batch.
    backward_flops: for one micro-batch, without recomputation.
    recompute_flops: for one micro-batch; 0 where nothing is recomputed.
    activation_bytes: what the backward pass reads, for one micro-batch.
    stored_bytes: what the policy keeps of all micro-batches in flight.
    sent_bytes: outputs of one micro-batch, to the next partition.
    memory_bytes: all that is counted on the device: partition_memory.py.
    share: of all FLOPs of a step, from 0 to 1.
  """

  start: int
  end: int
  first_cell: str
  last_cell: str
  device: str
  rematerialize: str
  params: int
  param_bytes: int
  forward_flops: int
  backward_flops: int
  recompute_flops: int
  activation_bytes: int
  stored_bytes: int
  sent_bytes: int
  memory_bytes: int
  share: float


@dataclasses.dataclass(frozen=True)
class PipelinePlan:
  """A pipeline before it exists.

  Attributes:
    cell_names: of all cells.
    stages: a PartitionPlan for each partition.
    replica_devices: for each replica the device of each partition; `stages`
      are those of replica 0.
    num_micro_batches: M, of each replica.
    micro_batch_size: examples in a micro-batch.
    schedule: name of the schedule.
    rematerialize: the policy of all partitions, or of each.
    cut: how the partitions were found.
    bubble: idle share of the schedule, were all partitions equally long.
    balance: mean over maximum of the partitions' work; 1 is perfect.
    utilization: share of the step in which a device works, on average; the
      bubble and the balance both lower it. By FLOPs; transfers take no time,
      nor do replicas for summing gradients.
    speedup: predicted, over one device that recomputes nothing.
    warnings: sentences for the log.
  """

  cell_names: tuple[str, ...]
  stages: tuple[PartitionPlan, ...]
  replica_devices: tuple[tuple[str, ...], ...]
  num_micro_batches: int
  micro_batch_size: int
  schedule: str
  rematerialize: str | tuple[str, ...]
  cut: str
  bubble: float
  balance: float
  utilization: float
  speedup: float
  warnings: tuple[str, ...]

  @property
  def num_partitions(self) -> int:
    return len(self.stages)

  @property
  def num_replicas(self) -> int:
    return len(self.replica_devices)

  @property
  def partitions(self) -> list[tuple[int, int]]:
    """Ranges (start, end) of cells."""
    return [(stage.start, stage.end) for stage in self.stages]

  @property
  def devices(self) -> list[str]:
    """The device of each partition, in replica 0."""
    return [stage.device for stage in self.stages]

  def ToJson(self) -> dict[str, Any]:
    """All fields as dicts, lists, numbers and strings, ready for json.dump."""
    plain = dataclasses.asdict(self)
    plain['stages'] = list(plain['stages'])
    plain['replica_devices'] = [list(d) for d in self.replica_devices]
    plain['cell_names'] = list(self.cell_names)
    plain['warnings'] = list(self.warnings)
    return {
      'num_partitions': self.num_partitions,
      'num_replicas': self.num_replicas,
      **plain,
    }

  def ToText(self) -> str:
    """A table for the log; see plan_text.py."""
    return plan_text.PlanText(self)


def MakePlan(
  costs: Sequence[cost.CellCost],
  *,
  replica_devices: Sequence[Sequence[str]],
  num_micro_batches: int,
  micro_batch_size: int,
  num_partitions: int | None = None,
  splits: Sequence[int] | Sequence[str] | None = None,
  schedule: str = 'gpipe',
  num_devices: int | None = None,
  rematerialize: str | Sequence[str] = 'partition',
  demands: plan_search.Demands | None = None,
) -> PipelinePlan:
  """Plans a pipeline.

  Args:
    costs: of the cells, for one micro-batch of this size.
    replica_devices: for each replica those of the partitions, in order; more
      than K are left unused.
    num_micro_batches: M, of each replica.
    micro_batch_size: examples in a micro-batch.
    num_partitions: K; None takes the number of splits, or else of devices.
    splits: the cut by hand, as of splits.SplitsToPartitions; None finds the
      best.
    schedule: name of a schedule of schedule.py.
    num_devices: how many devices the partitions take turns on, for the
      interleaved schedule; None: one for each partition.
    rematerialize: one of policies.REMATERIALIZE or AUTO, or one for each
      partition.
    demands: None for no further ones.

  Returns:
    The plan.

  Raises:
    ValueError: for options that do not fit the cells or each other, and where
      no cut keeps to `demands.device_memory`.
  """
  demands = demands or plan_search.Demands()
  devices = replica_devices[0]
  if num_partitions is None:
    num_partitions = len(splits if splits is not None else devices)
  if splits is not None and len(splits) != num_partitions:
    raise ValueError(
      f'splits={list(splits)} makes {len(splits)} partitions, but '
      f'num_partitions={num_partitions} (--worker_split_size)'
    )
  partition.CheckNumPartitions(num_partitions, len(costs))
  if len(devices) < num_partitions:
    raise ValueError(
      f'{len(devices)} devices ({", ".join(devices)}) for num_partitions='
      f'{num_partitions} (--worker_split_size): give one for each partition; a '
      'device may be listed more than once'
    )
  wanted = policies.Policies(rematerialize, num_partitions)
  table = schedule_lib.MakeSchedule(
    schedule, num_partitions, num_micro_batches, num_devices
  )
  names = [c.name for c in costs]
  search = plan_search.Search(costs, wanted, table, demands)
  if splits is not None:
    ranges = splits_lib.SplitsToPartitions(splits, names)
    cuts = {'cut by hand': ranges}
  else:
    cuts = search.Cuts()
  if demands.times is not None:
    cuts = {f'{cut}, measured': ranges for cut, ranges in cuts.items()}
  chosen = {cut: search.Chosen(ranges) for cut, ranges in cuts.items()}
  step_times = {
    cut: search.StepTime(ranges, chosen[cut]) for cut, ranges in cuts.items()
  }
  cut = min(step_times, key=step_times.get)
  policy, step = chosen[cut], step_times[cut]
  memory = search.memory.Of(search.slots, policy, cuts[cut])
  times = search.times
  recompute = policies.Recompute(policy)
  work = partition.PartitionCosts(times, cuts[cut], recompute)
  in_flight = table.InFlight()
  stages = tuple(
    _PartitionPlan(
      costs[start:end],
      start,
      device=devices[k],
      policy=policy[k],
      recompute=recompute[k],
      in_flight=in_flight[k],
      sends=k < num_partitions - 1,
      memory_bytes=memory[k],
      share=work[k] / sum(work) if sum(work) else 1 / num_partitions,
    )
    for k, (start, end) in enumerate(cuts[cut])
  )
  plain = num_micro_batches * sum(t.forward + t.backward for t in times)
  busy = num_micro_batches * sum(work)
  return PipelinePlan(
    cell_names=tuple(names),
    stages=stages,
    replica_devices=tuple(tuple(d[:num_partitions]) for d in replica_devices),
    num_micro_batches=num_micro_batches,
    micro_batch_size=micro_batch_size,
    schedule=schedule,
    rematerialize=(
      rematerialize if isinstance(rematerialize, str) else tuple(wanted)
    ),
    cut=cut,
    bubble=table.BubbleFraction(),
    balance=sum(work) / (num_partitions * max(work)) if max(work) else 1.0,
    utilization=busy / (table.num_devices * step) if step else 1.0,
    speedup=len(replica_devices) * plain / step if step else 1.0,
    warnings=(
      *_Warnings(num_partitions, num_micro_batches),
      *_MemoryWarnings(memory, demands.device_memory),
    ),
  )


def _MemoryWarnings(
  memory: Sequence[int], device_memory: int | None
) -> tuple[str, ...]:
  """Of a cut by hand, or by memory, that does not fit."""
  if device_memory is None or max(memory) <= device_memory:
    return ()
  k = int(np.argmax(memory))
  return (
    f'partition {k} takes {plan_text.Bytes(memory[k])}, more than '
    f'device_memory={plan_text.Bytes(device_memory)}',
  )


def _PartitionPlan(
  costs: Sequence[cost.CellCost],
  start: int,
  *,
  device: str,
  policy: str,
  recompute: bool,
  in_flight: int,
  sends: bool,
  memory_bytes: int,
  share: float,
) -> PartitionPlan:
  def _Sum(field: str) -> int:
    return sum(getattr(c, field) for c in costs)

  kept = {
    'none': _Sum('activation_bytes'),
    'partition': costs[0].input_bytes,
    'cell': _Sum('input_bytes'),
  }
  return PartitionPlan(
    start=start,
    end=start + len(costs),
    first_cell=costs[0].name,
    last_cell=costs[-1].name,
    device=device,
    rematerialize=policy,
    params=_Sum('params'),
    param_bytes=_Sum('param_bytes'),
    forward_flops=_Sum('forward_flops'),
    backward_flops=_Sum('backward_flops'),
    recompute_flops=_Sum('forward_flops') if recompute else 0,
    activation_bytes=_Sum('activation_bytes'),
    stored_bytes=in_flight * kept[policy],
    sent_bytes=costs[-1].output_bytes if sends else 0,
    memory_bytes=memory_bytes,
    share=share,
  )


def _Warnings(num_partitions: int, num_micro_batches: int) -> tuple[str, ...]:
  k, m = num_partitions, num_micro_batches
  advised = num_micro_batches_lib.MICRO_BATCHES_PER_PARTITION * k
  bubble = schedule_lib.BubbleFormula('gpipe', k, 1, m)
  if k == 1 or m >= advised:
    return ()
  if m < k:
    return (
      f'num_micro_batches={m} is less than num_partitions={k}: no moment '
      f'sees all devices at work, and {bubble:.0%} of the step is bubble; '
      f'{advised} would make it '
      f'{schedule_lib.BubbleFormula("gpipe", k, 1, advised):.0%}',
    )
  return (
    f'num_micro_batches={m} is less than {advised} (4 x num_partitions), from '
    f'where the GPipe paper finds the bubble negligible; here it is '
    f'{bubble:.0%} of the step',
  )
