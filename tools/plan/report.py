"""A search's outcome as text, and as JSON."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Sequence
from typing import Any

from lingvo_gpipe import text_table
from lingvo_gpipe.gpipe.planning import plan_text
from tools.plan import candidates as candidates_lib
from tools.plan import evaluation, search

_HEADER = (
  '',
  'R',
  'K',
  'M',
  'micro-batch',
  'schedule',
  'recompute',
  'memory',
  's/step',
  'examples/s',
  'bubble',
  'all-reduce',
  'update',
)
_LEFT = (5, 6)


def BestText(best: Sequence[evaluation.Planned]) -> str:
  """A table, the fastest first.

  Args:
    best: one at least.

  Returns:
    Several lines.
  """
  rows = [_HEADER]
  for i, planned in enumerate(best):
    c = planned.candidate
    rows.append(
      (
        str(i + 1),
        *_Counts(c),
        str(c.micro_batch_size),
        c.order,
        Policies(planned.policies),
        plan_text.Bytes(max(planned.memory)),
        Seconds(planned.seconds),
        plan_text.Count(_Examples(c) / planned.seconds),
        f'{planned.bubble:.1%}',
        Seconds(planned.all_reduce_seconds),
        Seconds(planned.update_seconds),
      )
    )
  return '\n'.join(text_table.Aligned(rows, left=_LEFT))


def DeviceText(planned: evaluation.Planned, cell_names: Sequence[str]) -> str:
  """A table of the partitions of one plan; equal neighbours in one line."""
  rows = [('partition', 'device', 'cells', 'from', 'to', 'recompute', 'memory')]
  c = planned.candidate
  lines = [
    (
      k % c.num_devices,
      end - start,
      cell_names[start],
      cell_names[end - 1],
      planned.policies[k],
      plan_text.Bytes(planned.memory[k % c.num_devices]),
    )
    for k, (start, end) in enumerate(planned.ranges)
  ]

  def _Alike(k: int) -> Any:
    unused_device, cells, unused_first, unused_last, policy, memory = lines[k]
    return cells, policy, memory

  for _, group in itertools.groupby(range(len(lines)), _Alike):
    first, *_, last = [*group] * 2
    device, cells, begin, unused_end, policy, memory = lines[first]
    rows.append(
      (
        _Range(first, last),
        _Range(device, lines[last][0]) if last - first < c.num_devices else '*',
        str(cells),
        begin,
        lines[last][3],
        policy,
        memory,
      )
    )
  return '\n'.join(text_table.Aligned(rows, left=(3, 4, 5)))


def RejectionText(rejections: Sequence[search.Rejection], limit: int) -> str:
  """A table of what does not fit.

  Args:
    rejections: one at least.
    limit: bytes of a device.

  Returns:
    Several lines.
  """
  rows = [
    (
      'R',
      'K',
      'M',
      'micro-batch',
      'schedule',
      'recompute',
      'needs',
      'of',
      'fits with',
    )
  ]
  for rejection in rejections:
    rejected = rejection.rejected
    c = rejected.candidate
    smallest = rejection.smallest_fitting
    rows.append(
      (
        *_Counts(c),
        str(c.micro_batch_size),
        c.order,
        c.policy,
        plan_text.Bytes(rejected.memory),
        plan_text.Bytes(limit),
        'no K' if smallest is None else f'K={smallest}',
      )
    )
  return '\n'.join(text_table.Aligned(rows, left=(4, 5)))


def Command(
  planned: evaluation.Planned,
  model: str,
  *,
  local_workers: bool,
  overrides: str = '',
  other_flags: Sequence[str] = (),
) -> str:
  """The trainer's command that realises a plan.

  Args:
    planned: the plan.
    model: its registered name.
    local_workers: whether devices are worker processes of this machine.
    overrides: further assignments to params.
    other_flags: flags that are passed on.

  Returns:
    One line.
  """
  c = planned.candidate
  assignments = [overrides] if overrides else []
  assignments.append(f'net.schedule={c.schedule}')
  if c.num_chunks > 1:
    assignments.append(f'net.num_chunks={c.num_chunks}')
  sizes = [end - start for start, end in planned.ranges]
  if len(sizes) > 1:
    assignments.append(f'net.splits={sizes}'.replace(' ', ''))
  policies = planned.policies
  if len(set(policies)) == 1:
    policies = policies[:1]
  assignments.append(f'net.rematerialize={"+".join(policies)}')
  flags = [f'--model={model}', '--logdir=/tmp/planned']
  if local_workers:
    flags.append(f'--local_workers={c.num_replicas * c.num_devices}')
  flags.append(f'--worker_split_size={c.num_devices}')
  if c.num_replicas > 1:
    flags.append(f'--worker_replicas={c.num_replicas}')
  flags.append(f'--num_micro_batches={c.num_micro_batches}')
  flags += other_flags
  flags.append(f'--model_params_override={";".join(assignments)}')
  return ' '.join(['tools/bazelw run //:trainer --', *map(shlex.quote, flags)])


def ToJson(
  outcome: search.Outcome, command: str | None, **settings: Any
) -> dict[str, Any]:
  """All that was found, ready for json.dump.

  Args:
    outcome: of the search.
    command: of Command for the best; None where nothing fits.
    **settings: what was searched with.

  Returns:
    The object.
  """
  return {
    **settings,
    'best': [
      {
        **dataclasses.asdict(planned),
        'seconds': planned.seconds,
      }
      for planned in outcome.best
    ],
    'rejections': [dataclasses.asdict(r) for r in outcome.rejections],
    'num_candidates': outcome.num_candidates,
    'num_evaluated': outcome.num_evaluated,
    'num_rejected': outcome.num_rejected,
    'command': command,
  }


def Policies(policies: Sequence[str]) -> str:
  """'none', or 'partition x12, none x4' where they differ."""
  if len(set(policies)) == 1:
    return policies[0]
  counts = {policy: policies.count(policy) for policy in policies}
  return ', '.join(f'{policy} x{count}' for policy, count in counts.items())


def Seconds(value: float) -> str:
  """In three digits: '0.0123', '1.23', '123'."""
  return f'{value:#.3g}'.rstrip('.') if value < 1000 else f'{value:,.0f}'


def _Examples(c: candidates_lib.Candidate) -> int:
  return c.num_replicas * c.num_micro_batches * c.micro_batch_size


def _Counts(c: candidates_lib.Candidate) -> tuple[str, str, str]:
  return str(c.num_replicas), str(c.num_devices), str(c.num_micro_batches)


def _Range(first: int, last: int) -> str:
  return str(first) if first == last else f'{first}-{last}'
