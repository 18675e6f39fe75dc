"""Predictions of tools/plan beside measured runs on workers of this machine.

  python -m tools.plan.check --layers=6 --model_dim=1024 --ffn_dim=4096 \\
      --batch=16 --workers=1,2 --micro_batches=4,8 --policies=none,partition

First the cells, the link between two workers and the speed of memory are
measured as `tools/plan --measure` does; then each combination of the lists is
predicted, and trained for some steps by new workers.
"""

from __future__ import annotations

import itertools
from typing import Any

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command, report, stack_flags
from tools.plan import report as plan_report

_WORKERS = flags.DEFINE_list('workers', '1,2', 'Numbers of workers, K.')
_MICRO_BATCHES = flags.DEFINE_list(
  'micro_batches', '4,8', 'Numbers of micro-batches, M; divisors of --batch.'
)
_POLICIES = flags.DEFINE_list(
  'policies', 'none,partition', 'What is computed again.'
)
_SCHEDULE = flags.DEFINE_enum(
  'schedule',
  '1f1b',
  ['gpipe', '1f1b', 'eager_1f1b'],
  'In which order passes come.',
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 5, 'Measured steps of each configuration.', lower_bound=1
)

_COLUMNS = (
  report.Column('num_devices', 'K'),
  report.Column('num_micro_batches', 'M'),
  report.Column('schedule', 'schedule'),
  report.Column('policies', 'recompute'),
  report.Column('memory', 'memory, MiB', report.Mebibytes),
  report.Column('predicted_memory', 'predicted', report.Mebibytes),
  report.Column('memory_error', 'error', lambda x: f'{x:+.1%}'),
  report.Column('seconds', 's/step', report.Seconds),
  report.Column('predicted_seconds', 'predicted', report.Seconds),
  report.Column('seconds_error', 'error', lambda x: f'{x:+.1%}'),
  report.Column('fastest', 'fastest', report.Seconds),
  report.Column('slowest', 'slowest', report.Seconds),
)


def AsRow(row: Any) -> dict[str, Any]:
  """A row of the table.

  Args:
    row: a check_runs.Row.

  Returns:
    Values by the columns' keys.
  """
  c = row.planned.candidate
  return {
    'num_devices': c.num_devices,
    'num_micro_batches': c.num_micro_batches,
    'schedule': c.schedule,
    'policies': plan_report.Policies(row.planned.policies),
    'memory': max(row.measured.memory),
    'predicted_memory': max(row.planned.memory),
    'memory_error': row.memory_error,
    'seconds': row.measured.median,
    'predicted_seconds': row.planned.seconds,
    'seconds_error': row.seconds_error,
    'fastest': min(row.measured.seconds),
    'slowest': max(row.measured.seconds),
  }


def Main() -> int:
  """The tool."""
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    workers = stack_flags.Integers('workers', _WORKERS.value)
    micro_batches = stack_flags.Integers('micro_batches', _MICRO_BATCHES.value)
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from tools.plan import check_runs, evaluation, measure

  with user_error.Expected(ValueError):
    candidates = list(
      dict.fromkeys(
        check_runs.Candidate(sizes, k, m, _SCHEDULE.value, policy)
        for k, m, policy in itertools.product(
          workers, micro_batches, _POLICIES.value
        )
      )
    )
  measure.UseOneThread()
  model = check_runs.Costs(sizes)
  # Before this process is the client of workers, which may not be there later.
  cell_times = {
    num_workers: measure.CellTimes(
      model,
      {c.micro_batch_size for c in candidates if c.num_devices == num_workers},
      report.Progress,
      num_workers=num_workers,
    )
    for num_workers in workers
  }
  report.Progress('measuring two workers')
  measured_workers = measure.MeasureWorkers()
  report.Progress(
    f'link {measured_workers.link_speed / 1e6:.0f} MB/s, latency '
    f'{1e3 * measured_workers.link_latency:.2f} ms; memory '
    f'{measured_workers.memory_speed / 1e9:.1f} GB/s; a worker takes '
    f'{measured_workers.memory_overhead / 2**20:.0f} MiB'
  )
  rows = []
  for candidate in candidates:
    device = measure.MakeDevice(
      cell_times[candidate.num_devices], measured_workers
    )
    planned = evaluation.Evaluator(model, device).Evaluate(candidate)
    measured = check_runs.Run(planned, sizes, _ROUNDS.value)
    rows.append(AsRow(check_runs.Row(planned, measured)))
    report.Progress(f'{len(rows)} of {len(candidates)} done')
  print(report.Table(_COLUMNS, rows))
  if stack_flags.OUTPUT.value:
    report.WriteJson(stack_flags.OUTPUT.value, rows, sizes=sizes.ToJson())
  return 0


if __name__ == '__main__':
  command.Run(Main)
