"""The plan of a pipeline: which cells go where, and what to expect of it.

`MakePlan` is a pure function of the cells' costs and a few options. Its result
is plain data that prints as a table (`ToText`) and as JSON (`ToJson`).

The cut. `partition.Partition` balances a cost. If forward and backward passes
of a device alternate, its work for a micro-batch counts: F + F + B where it
re-materializes, F + B on the last partition. With few micro-batches, filling
and draining count as well, and equal F + B can be better. So both cuts are
made, a step of each is played through the schedule's table, and the faster one
is taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
from lingvo_gpipe.gpipe import partition, plan_text, schedule_table
from lingvo_gpipe.gpipe import schedule as schedule_lib

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe import cost

# What a partition keeps of a micro-batch, and computes again: see
# stage_functions.py.
REMATERIALIZE = ('none', 'partition', 'cell')


@dataclasses.dataclass(frozen=True)
class PartitionPlan:
  """One partition; bytes and FLOPs are those of all its cells.

  Attributes:
    start: index of its first cell.
    end: index after its last cell.
    first_cell: name.
    last_cell: name.
    device: device string.
    rematerialize: policy, one of REMATERIALIZE.
    params: trainable parameters.
    param_bytes: of all variables.
    forward_flops: for one micro-batch.
    backward_flops: for one micro-batch, without recomputation.
    recompute_flops: for one micro-batch; 0 where nothing is recomputed.
    activation_bytes: what the backward pass reads, for one micro-batch.
    stored_bytes: what the policy keeps of all micro-batches in flight.
    sent_bytes: outputs of one micro-batch, to the next partition.
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
  share: float


@dataclasses.dataclass(frozen=True)
class PipelinePlan:
  """A pipeline before it exists.

  Attributes:
    cell_names: of all cells.
    stages: a PartitionPlan for each partition.
    num_micro_batches: M.
    micro_batch_size: examples in a micro-batch.
    schedule: name of the schedule.
    rematerialize: the policy of all partitions, or of each.
    cut: how the partitions were found.
    bubble: idle share of the schedule, were all partitions equally long.
    balance: mean over maximum of the partitions' work; 1 is perfect.
    utilization: share of the step in which a device works, on average; the
      bubble and the balance both lower it. By FLOPs; transfers take no time.
    speedup: predicted, over one device that recomputes nothing.
    warnings: sentences for the log.
  """

  cell_names: tuple[str, ...]
  stages: tuple[PartitionPlan, ...]
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
  def partitions(self) -> list[tuple[int, int]]:
    """Ranges (start, end) of cells."""
    return [(stage.start, stage.end) for stage in self.stages]

  @property
  def devices(self) -> list[str]:
    """The device of each partition."""
    return [stage.device for stage in self.stages]

  def ToJson(self) -> dict[str, Any]:
    """All fields as dicts, lists, numbers and strings, ready for json.dump."""
    plain = dataclasses.asdict(self)
    plain['stages'] = list(plain['stages'])
    plain['cell_names'] = list(self.cell_names)
    plain['warnings'] = list(self.warnings)
    return {'num_partitions': self.num_partitions, **plain}

  def ToText(self) -> str:
    """A table for the log; see plan_text.py."""
    return plan_text.PlanText(self)


def MakePlan(
  costs: Sequence[cost.CellCost],
  *,
  devices: Sequence[str],
  num_micro_batches: int,
  micro_batch_size: int,
  num_partitions: int | None = None,
  splits: Sequence[int] | Sequence[str] | None = None,
  schedule: str = 'gpipe',
  num_devices: int | None = None,
  rematerialize: str | Sequence[str] = 'partition',
) -> PipelinePlan:
  """Plans a pipeline.

  Args:
    costs: of the cells, for one micro-batch of this size.
    devices: of the partitions, in order; more than K are left unused.
    num_micro_batches: M.
    micro_batch_size: examples in a micro-batch.
    num_partitions: K; None takes the number of splits, or else of devices.
    splits: the cut by hand, as of partition.SplitsToPartitions; None finds the
      best.
    schedule: name of a schedule of schedule.py.
    num_devices: how many devices the partitions take turns on, for the
      interleaved schedule; None: one for each partition.
    rematerialize: one of REMATERIALIZE, or one for each partition.

  Returns:
    The plan.

  Raises:
    ValueError: for options that do not fit the cells or each other.
  """
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
  policies = Policies(rematerialize, num_partitions)
  table = schedule_lib.MakeSchedule(
    schedule, num_partitions, num_micro_batches, num_devices
  )
  recompute = Recompute(policies)

  names = [c.name for c in costs]
  times = [partition.CellTime(c.forward_flops, c.backward_flops) for c in costs]
  if splits is not None:
    cuts = {'cut by hand': partition.SplitsToPartitions(splits, names)}
  else:
    cuts = {
      'equal work': partition.Partition(times, num_partitions, recompute),
      'equal F + B': partition.Partition(
        times, num_partitions, [False] * num_partitions
      ),
    }
  step_times = {
    cut: CutStepTime(table, times, ranges, recompute)
    for cut, ranges in cuts.items()
  }
  cut = min(step_times, key=step_times.get)
  work = partition.PartitionCosts(times, cuts[cut], recompute)
  step = step_times[cut]
  in_flight = table.InFlight()
  stages = tuple(
    _PartitionPlan(
      costs[start:end],
      start,
      device=devices[k],
      policy=policies[k],
      recompute=recompute[k],
      in_flight=in_flight[k],
      sends=k < num_partitions - 1,
      share=work[k] / sum(work) if sum(work) else 1 / num_partitions,
    )
    for k, (start, end) in enumerate(cuts[cut])
  )
  plain = num_micro_batches * sum(t.forward + t.backward for t in times)
  busy = num_micro_batches * sum(work)
  return PipelinePlan(
    cell_names=tuple(names),
    stages=stages,
    num_micro_batches=num_micro_batches,
    micro_batch_size=micro_batch_size,
    schedule=schedule,
    rematerialize=(
      rematerialize if isinstance(rematerialize, str) else tuple(policies)
    ),
    cut=cut,
    bubble=table.BubbleFraction(),
    balance=sum(work) / (num_partitions * max(work)) if max(work) else 1.0,
    utilization=busy / (table.num_devices * step) if step else 1.0,
    speedup=plain / step if step else 1.0,
    warnings=_Warnings(num_partitions, num_micro_batches),
  )


def Policies(
  rematerialize: str | Sequence[str], num_partitions: int
) -> list[str]:
  """The policy of each partition.

  Args:
    rematerialize: one of REMATERIALIZE, or one for each partition.
    num_partitions: K.

  Returns:
    One of REMATERIALIZE for each.

  Raises:
    ValueError: for anything else.
  """
  one = isinstance(rematerialize, str)
  policies = [rematerialize] * num_partitions if one else list(rematerialize)
  unknown = [policy for policy in policies if policy not in REMATERIALIZE]
  if unknown or len(policies) != num_partitions:
    raise ValueError(
      f'rematerialize={rematerialize!r} must be one of '
      f'{", ".join(REMATERIALIZE)}, or a list of one for each of the '
      f'{num_partitions} partitions'
    )
  return policies


def Recompute(policies: Sequence[str]) -> list[bool]:
  """Which partitions run their forward pass twice.

  The last one keeps what it needs, unless it is to hold one cell's at a time.

  Args:
    policies: of each partition, one of REMATERIALIZE.

  Returns:
    One for each partition.
  """
  recompute = [policy != 'none' for policy in policies]
  recompute[-1] = policies[-1] == 'cell'
  return recompute


def CutStepTime(
  table: schedule_table.Schedule,
  times: Sequence[partition.CellTime],
  ranges: Sequence[tuple[int, int]],
  recompute: Sequence[bool],
) -> float:
  """How long a step takes with a cut.

  Args:
    table: the schedule.
    times: of the cells.
    ranges: the cut, (start, end) of cells for each partition.
    recompute: for each partition, whether it runs its forward pass twice.

  Returns:
    The time, in the unit of `times`.
  """
  forward = [sum(t.forward for t in times[i:j]) for i, j in ranges]
  backward = [sum(t.backward for t in times[i:j]) for i, j in ranges]
  again = [f if r else 0 for f, r in zip(forward, recompute, strict=True)]
  return schedule_lib.StepTime(table, forward, backward, again)


def _PartitionPlan(
  costs: Sequence[cost.CellCost],
  start: int,
  *,
  device: str,
  policy: str,
  recompute: bool,
  in_flight: int,
  sends: bool,
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
