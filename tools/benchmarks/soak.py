"""Trains for hours and looks whether memory grows or training slows down.

  python -m tools.benchmarks.soak --minutes=120

A trainer and its workers are processes. The run does all that a long one does:
it logs, writes checkpoints in the background and deletes old ones, evaluates
on the way. Their resident memory, their processor time and the steps done are
sampled; the table has a row for each tenth of the time. Processor time for a
step tells of the program also where other work slows the machine down.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from lingvo_gpipe.workers import process_memory
from tools.benchmarks import command, fault_processes, report

_MODEL = flags.DEFINE_string(
  'model', 'lm.small.TransformerSmall', 'The registered model to train.'
)
_OVERRIDE = flags.DEFINE_string(
  'model_params_override', 'input.batch_size=8', 'Changes to its params.'
)
_NUM_WORKERS = flags.DEFINE_integer('num_workers', 2, 'K.', lower_bound=1)
_MINUTES = flags.DEFINE_float('minutes', 120.0, 'How long.', lower_bound=0.05)
_SAMPLE_SECONDS = flags.DEFINE_float(
  'sample_seconds', 15.0, 'Between two looks.', lower_bound=0.5
)
_SAVE_STEPS = flags.DEFINE_integer(
  'save_steps', 100, 'Steps between two checkpoints.', lower_bound=1
)
_EVAL_STEPS = flags.DEFINE_integer(
  'eval_steps', 500, 'Steps between two evaluations; 0: none.', lower_bound=0
)
_LOGDIR = flags.DEFINE_string(
  'logdir', None, 'Of the run. Default: a temporary one.'
)
_OUTPUT = flags.DEFINE_string(
  'output', None, 'A JSON file for all samples and the table.'
)

_STEP = r'step (\d+)/'
_MAX_STEPS = 100_000_000
_PARTS = 10


def _CpuSeconds(pid: int) -> float:
  """Processor time of all threads of a process, from man 5 proc."""
  with open(f'/proc/{pid}/stat', encoding='ascii') as f:
    # The name in parentheses may have blanks.
    fields = f.read().rpartition(')')[2].split()
  return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def _Sample(
  processes: fault_processes.Processes, names: Mapping[str, str | int]
) -> dict[str, Any]:
  """What can be seen now; names: {column: of whom}."""
  pids = {name: processes.Pid(who) for name, who in names.items()}
  return {
    'time': time.monotonic(),
    'step': int(processes.output.Last(_STEP)[1]),
    'cpu': sum(map(_CpuSeconds, pids.values())),
    **{name: process_memory.Read(pid).current for name, pid in pids.items()},
  }


def _Parts(
  samples: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> list[dict[str, Any]]:
  """Rows: means over tenths of the samples."""
  rows = []
  count = min(_PARTS, len(samples) - 1)
  for i in range(count):
    begin = i * (len(samples) - 1) // count
    part = samples[begin : (i + 1) * (len(samples) - 1) // count + 1]
    first, last = part[0], part[-1]
    steps = last['step'] - first['step']
    seconds = last['time'] - first['time']
    rows.append(
      {
        'minutes': (last['time'] - samples[0]['time']) / 60.0,
        'step': last['step'],
        'per_second': steps / seconds,
        'cpu_per_step': (last['cpu'] - first['cpu']) / steps if steps else None,
        **{n: statistics.median(s[n] for s in part) for n in names},
      }
    )
  return rows


def _Growth(samples: Sequence[Mapping[str, Any]], name: str) -> float:
  """Bytes an hour in the last three quarters, by least squares."""
  late = samples[len(samples) // 4 :]
  if len(late) < 2:
    return 0.0
  fit = statistics.linear_regression(
    [s['time'] / 3600.0 for s in late], [float(s[name]) for s in late]
  )
  return fit.slope


def _Columns(names: Iterable[str]) -> list[report.Column]:
  return [
    report.Column('minutes', 'minutes', lambda value: f'{value:.1f}'),
    report.Column('step', 'step', report.Count),
    report.Column('per_second', 'steps/s', report.Ratio),
    report.Column('cpu_per_step', 'CPU s a step', report.Seconds),
    *(report.Column(n, f'{n}, MiB', report.Mebibytes) for n in names),
  ]


def _Measure(
  processes: fault_processes.Processes,
  logdir: str,
  names: Mapping[str, str | int],
) -> list[dict[str, Any]]:
  """Trains for the time asked for; returns the samples."""
  override = (
    f'{_OVERRIDE.value};train.log_interval_steps=10;'
    f'train.save_interval_steps={_SAVE_STEPS.value};'
    f'eval.interval_steps={_EVAL_STEPS.value}'
  )
  processes.StartTrainer(
    logdir,
    [
      f'--model={_MODEL.value}',
      f'--max_steps={_MAX_STEPS}',
      f'--model_params_override={override}',
    ],
  )
  processes.output.Await(_STEP)
  samples = [_Sample(processes, names)]
  deadline = time.monotonic() + 60.0 * _MINUTES.value
  while time.monotonic() < deadline:
    time.sleep(_SAMPLE_SECONDS.value)
    samples.append(_Sample(processes, names))
    if len(samples) % 40 == 0:
      report.Progress(report.Table(_Columns(names), _Last(samples)))
  processes.EndTrainer()
  return samples


def _Last(samples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
  last = samples[-1]
  return [{**last, 'minutes': (last['time'] - samples[0]['time']) / 60.0}]


def Main() -> int:
  """Trains and measures; returns the exit status."""
  names = {
    'trainer': fault_processes.TRAINER,
    **{f'worker {k}': k for k in range(_NUM_WORKERS.value)},
  }
  with contextlib.ExitStack() as stack:
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    processes = stack.enter_context(
      fault_processes.Processes(_NUM_WORKERS.value, directory, None, 30.0)
    )
    samples = _Measure(
      processes, _LOGDIR.value or os.path.join(directory, 'run'), names
    )
  rows = _Parts(samples, names)
  growth = {name: _Growth(samples, name) for name in names}
  print(report.Table(_Columns(names), rows))
  print(
    'growth in the last three quarters, MiB an hour: '
    + ', '.join(f'{n} {report.Mebibytes(g)}' for n, g in growth.items())
  )
  if _OUTPUT.value:
    report.WriteJson(_OUTPUT.value, rows, growth=growth, samples=samples)
  return 0


if __name__ == '__main__':
  command.Run(Main)
