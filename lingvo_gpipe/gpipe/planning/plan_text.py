"""A pipeline's plan as a table for people: aligned, with human units.

partition  cells  from  to       device         params  weights    ...  share
        0      5  stem  block_3  /device:CPU:0   1.21M  4.62 MiB   ...  49.3%
        1      6  ...
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lingvo_gpipe import text_table
from lingvo_gpipe.gpipe.planning import policies

if TYPE_CHECKING:
  from lingvo_gpipe.gpipe.planning import plan as plan_lib

_LEGEND = (
  'Per micro-batch: FLOPs, activations (read by the backward pass), sent '
  '(outputs to the next partition). Stored: what is kept of all micro-batches '
  'in flight. Weights: all variables. Memory: these, with gradients, optimizer '
  'slots, data and all that is in flight; not the temporaries of kernels.'
)

_HEADER = (
  'partition',
  'cells',
  'from',
  'to',
  'device',
  'params',
  'weights',
  'forward',
  'backward',
  'recompute',
  'activations',
  'stored',
  'sent',
  'memory',
  'share',
)
# Columns of names.
_LEFT = tuple(map(_HEADER.index, ('from', 'to', 'device')))


def PlanText(plan: plan_lib.PipelinePlan) -> str:
  """A line for each partition, their sums, the prediction and warnings.

  Args:
    plan: of the pipeline.

  Returns:
    Several lines for the log.
  """
  rows = [_HEADER]
  rows += [_Row(str(k), stage) for k, stage in enumerate(plan.stages)]
  if plan.num_partitions > 1:
    rows.append(_Row('all', _Total(plan.stages)))
  of_each = ''
  if plan.num_replicas > 1:
    of_each = f'{plan.num_replicas} replicas, each with '
  lines = [
    f'{len(plan.cell_names)} cells in {plan.num_partitions} '
    f'partition{"s"[: plan.num_partitions > 1]} '
    f'({plan.cut}); {of_each}{plan.num_micro_batches} micro-batches of '
    f'{plan.micro_batch_size}; schedule {plan.schedule}, rematerialize '
    f'{_Policies(plan)}',
    *text_table.Aligned(rows, left=_LEFT),
    *(
      f'Replica {r} is on {", ".join(plan.replica_devices[r])}; the table is '
      'of replica 0.'
      for r in range(1, plan.num_replicas)
    ),
    f'Predicted: bubble {plan.bubble:.1%}, balance {plan.balance:.1%}, '
    f'devices busy {plan.utilization:.1%}, {plan.speedup:.2f} times as fast '
    'as one device without recomputation.',
    _LEGEND,
    *(f'Warning: {warning}' for warning in plan.warnings),
  ]
  return '\n'.join(lines)


def _Policies(plan: plan_lib.PipelinePlan) -> str:
  """What was asked for, and what became of 'auto'."""
  asked = plan.rematerialize
  text = asked if isinstance(asked, str) else ', '.join(asked)
  if policies.AUTO not in text:
    return text
  return f'{text} ({", ".join(s.rematerialize for s in plan.stages)})'


def _Row(label: str, stage: plan_lib.PartitionPlan) -> tuple[str, ...]:
  return (
    label,
    str(stage.end - stage.start),
    stage.first_cell,
    stage.last_cell,
    stage.device,
    Count(stage.params),
    Bytes(stage.param_bytes),
    Flops(stage.forward_flops),
    Flops(stage.backward_flops),
    Flops(stage.recompute_flops),
    Bytes(stage.activation_bytes),
    Bytes(stage.stored_bytes),
    Bytes(stage.sent_bytes),
    Bytes(stage.memory_bytes),
    f'{stage.share:.1%}',
  )


def _Total(stages: Sequence[plan_lib.PartitionPlan]) -> plan_lib.PartitionPlan:
  sums = {
    field.name: sum(getattr(stage, field.name) for stage in stages)
    for field in dataclasses.fields(stages[0])
    if field.type in ('int', 'float')
  }
  sums.update(start=stages[0].start, end=stages[-1].end)
  return dataclasses.replace(
    stages[0], first_cell='', last_cell='', device='', **sums
  )


def Count(number: float) -> str:
  """A number of things, in three digits: 950, 1.23K, 45.6M, 6.01B."""
  return _Scaled(number, 1000, ('', 'K', 'M', 'B', 'T', 'Q'))


def Flops(number: float) -> str:
  """A number of floating-point operations: 950, 1.23K, 45.6M, 6.01G."""
  return _Scaled(number, 1000, ('', 'K', 'M', 'G', 'T', 'P'))


def Bytes(number: float) -> str:
  """A number of bytes: 950 B, 1.23 KiB, 45.6 MiB."""
  return _Scaled(number, 1024, (' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB'))


def _Scaled(number: float, base: int, units: Sequence[str]) -> str:
  if number < base:
    return f'{number:.0f}{units[0]}'
  for unit in units[1:]:
    number /= base
    # What would round up to the base takes the next unit.
    if number < base - 0.5 or unit == units[-1]:
      digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
      return f'{number:.{digits}f}{unit}'
  raise AssertionError('unreachable')
