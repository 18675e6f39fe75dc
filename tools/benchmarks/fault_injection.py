"""Hurts a training run in all ways and places, and looks what it loses.

  python -m tools.benchmarks.fault_injection --repeats=2 --emulated_hosts

A trainer and its workers are processes. Each fault takes one of them, at one
moment of training: its process is killed, or stands still for some seconds, or
(on emulated hosts) its link is cut for so long. Who is killed comes back: a
worker by its own parent, the trainer by this tool, which starts the same
command again. At the end the log of all steps is compared with that of a run
that nothing happened to.

  moment      when the fault comes
  start       while the trainer builds its graph
  forward     a quarter of a step after the step before
  backward    after seven tenths
  update      after 97 hundredths
  checkpoint  when the files of a checkpoint are being written
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import statistics
import tempfile
import time
from typing import Any

from absl import flags

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import step_log
from tools.benchmarks import (
  command,
  emulated_hosts,
  fault_processes,
  report,
)

MOMENTS = ('start', 'forward', 'backward', 'update', 'checkpoint')
KINDS = ('kill', 'stop', 'cut')

_MODEL = flags.DEFINE_string(
  'model', 'lm.small.TransformerSmall', 'The registered model to train.'
)
_OVERRIDE = flags.DEFINE_string(
  'model_params_override',
  'input.batch_size=8;eval.interval_steps=0',
  'Changes to its params; a step should take some tenths of a second.',
)
_NUM_WORKERS = flags.DEFINE_integer('num_workers', 2, 'K.', lower_bound=1)
_MOMENTS = flags.DEFINE_list('moments', list(MOMENTS), 'Which.')
_KINDS = flags.DEFINE_list(
  'kinds', None, 'Of kill, stop, cut. Default: all that are possible.'
)
_REPEATS = flags.DEFINE_integer('repeats', 1, 'Of each fault.', lower_bound=1)
_EMULATED_HOSTS = flags.DEFINE_bool(
  'emulated_hosts',
  False,
  'Each process on a host of its own, whose link can be cut; needs root.',
)
_SAVE_STEPS = flags.DEFINE_integer(
  'save_steps', 5, 'Steps between two checkpoints.', lower_bound=1
)
_LOST_SECONDS = flags.DEFINE_float(
  'lost_seconds', 3.0, "The trainer's --worker_lost_seconds.", lower_bound=1.0
)
_PAUSE_SECONDS = flags.DEFINE_float(
  'pause_seconds', 8.0, 'How long "stop" and "cut" last.', lower_bound=0.0
)
_OUTPUT = flags.DEFINE_string('output', '', 'A JSON file for the results.')

_STEP = r'step (\d+)/'
_FRACTIONS = {'forward': 0.25, 'backward': 0.7, 'update': 0.97}
# Of a run that goes on until it is told to end.
_MAX_STEPS = 100_000


def _TrainerArgs() -> list[str]:
  override = (
    f'{_OVERRIDE.value};train.log_interval_steps=1;'
    f'train.save_interval_steps={_SAVE_STEPS.value}'
  )
  return [
    f'--model={_MODEL.value}',
    f'--max_steps={_MAX_STEPS}',
    f'--model_params_override={override}',
  ]


class _Run:
  """The run that is hurt."""

  def __init__(self, processes: fault_processes.Processes, logdir: str):
    self._processes = processes
    self._logdir = logdir
    self._Start()
    self._line = 0
    self._step_seconds = self._MeasureStep()

  def _Start(self) -> None:
    self._processes.StartTrainer(self._logdir, _TrainerArgs())
    self._line = 0

  def _MeasureStep(self) -> float:
    """Median seconds of a step, after the first ones."""
    times = []
    for _ in range(12):
      when, _, self._line = self._processes.output.Await(_STEP, self._line)
      times.append(when)
    return statistics.median(b - a for a, b in itertools.pairwise(times[4:]))

  def Inject(self, victim: str | int, moment: str, kind: str) -> dict[str, Any]:
    """One fault; returns when training was going on again."""
    if moment == 'start':
      self._processes.EndTrainer()
      self._Start()
    self._AwaitMoment(moment)
    hurt_at = time.time()
    line = self._processes.output.count
    repair = self._processes.Hurt(victim, kind)
    if kind != 'kill':
      time.sleep(_PAUSE_SECONDS.value)
      repair()
    elif victim == fault_processes.TRAINER:
      self._Start()
      line = 0
    result = {'victim': victim, 'moment': moment, 'kind': kind}
    # Training goes on when a step comes that was not done at the fault: two
    # lines of steps later than any line on its way.
    when, lost_at = self._AwaitProgress(line, hurt_at)
    result['noticed'] = lost_at - hurt_at if lost_at else None
    result['training_again'] = when - hurt_at
    return result

  def _AwaitMoment(self, moment: str) -> None:
    output = self._processes.output
    if moment == 'start':
      _, _, self._line = output.Await('training from step ', 0)
      return
    if moment == 'checkpoint':
      pattern = os.path.join(glob.escape(self._logdir), 'train', '.tmp-ckpt-*')
      deadline = time.monotonic() + 120.0
      while not glob.glob(pattern):
        if time.monotonic() > deadline:
          raise RuntimeError('no checkpoint was written')
        time.sleep(0.001)
      return
    # The next step begins when the line of the one before comes.
    when, _, self._line = output.Await(_STEP, output.count)
    rest = when + _FRACTIONS[moment] * self._step_seconds - time.time()
    time.sleep(max(0.0, rest))

  def _AwaitProgress(
    self, line: int, hurt_at: float
  ) -> tuple[float, float | None]:
    """When training went on, and when it noticed that it had to restart."""
    output = self._processes.output
    steps = len(self.Log())
    lost_at = None
    while True:
      when, match, line = output.Await(rf'(lost: .*)|{_STEP}', line)
      if match[1]:
        lost_at = lost_at or when
      elif int(match[2]) > steps + 1 and when > hurt_at:
        self._line = line
        return when, lost_at

  def Log(self) -> list[dict[str, Any]]:
    """All steps so far."""
    path = os.path.join(self._logdir, 'train', 'metrics.jsonl')
    return step_log.Read(path) if os.path.exists(path) else []


def _Unbroken(
  processes: fault_processes.Processes, logdir: str, steps: int
) -> list[dict[str, Any]]:
  """The log of a run that nothing happens to."""
  processes.StartTrainer(logdir, _TrainerArgs())
  line = 0
  while True:
    _, match, line = processes.output.Await(_STEP, line)
    if int(match[1]) >= steps:
      break
  processes.EndTrainer()
  return step_log.Read(os.path.join(logdir, 'train', 'metrics.jsonl'))


def _Rows(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
  """Medians and maxima for each kind of fault."""
  rows = []
  key = lambda r: (r['kind'], r['moment'])  # noqa: E731
  for (kind, moment), group in itertools.groupby(sorted(results, key=key), key):
    group = list(group)
    noticed = [r['noticed'] for r in group if r['noticed'] is not None]
    again = [r['training_again'] for r in group]
    rows.append(
      {
        'fault': f'{kind}, {moment}',
        'count': len(group),
        'restarts': len(noticed),
        'noticed': statistics.median(noticed) if noticed else None,
        'noticed_max': max(noticed) if noticed else None,
        'again': statistics.median(again),
        'again_max': max(again),
      }
    )
  return rows


_COLUMNS = (
  report.Column('fault', 'fault'),
  report.Column('count', 'faults'),
  report.Column('restarts', 'restarts after a loss'),
  report.Column('noticed', 'noticed, s (median)', report.Seconds),
  report.Column('noticed_max', '(max)', report.Seconds),
  report.Column('again', 'training again, s (median)', report.Seconds),
  report.Column('again_max', '(max)', report.Seconds),
)


def _Kinds() -> list[str]:
  kinds = _KINDS.value
  if kinds is None:
    kinds = [k for k in KINDS if k != 'cut' or _EMULATED_HOSTS.value]
  for name, values, known in (
    ('kinds', kinds, KINDS),
    ('moments', _MOMENTS.value, MOMENTS),
  ):
    unknown = sorted(set(values) - set(known))
    if unknown:
      raise user_error.UserError(
        f'--{name}: {", ".join(unknown)} is none of {", ".join(known)}'
      )
  if 'cut' in kinds and not _EMULATED_HOSTS.value:
    raise user_error.UserError(
      '--kinds=cut needs --emulated_hosts, whose links can be cut'
    )
  return kinds


def Main() -> int:
  """Injects all faults; returns the exit status."""
  faults = [
    (victim, moment, kind)
    for _ in range(_REPEATS.value)
    for kind in _Kinds()
    for moment in _MOMENTS.value
    for victim in (fault_processes.TRAINER, *range(_NUM_WORKERS.value))
  ]
  results = []
  with contextlib.ExitStack() as stack:
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    hosts = None
    if _EMULATED_HOSTS.value:
      hosts = stack.enter_context(
        emulated_hosts.EmulatedHosts(_NUM_WORKERS.value + 1)
      )
    processes = stack.enter_context(
      fault_processes.Processes(
        _NUM_WORKERS.value, directory, hosts, _LOST_SECONDS.value
      )
    )
    run = _Run(processes, os.path.join(directory, 'hurt'))
    for i, fault in enumerate(faults):
      result = run.Inject(*fault)
      results.append(result)
      report.Progress(
        f'{i + 1}/{len(faults)}: {fault[2]} {fault[0]} at {fault[1]}: training '
        f'again after {result["training_again"]:.1f} s'
      )
    processes.EndTrainer()
    log = run.Log()
    report.Progress(f'{len(log)} steps; now the same without faults')
    unbroken = _Unbroken(processes, os.path.join(directory, 'whole'), len(log))
  rows = _Rows(results)
  print(report.Table(_COLUMNS, rows))
  equal = log == unbroken[: len(log)]
  print(
    f'{len(faults)} faults in {len(log)} steps. The log of all steps is '
    + ('that of' if equal else 'NOT that of')
    + ' a run without faults, to the last bit.'
  )
  if _OUTPUT.value:
    report.WriteJson(
      _OUTPUT.value, rows, faults=results, steps=len(log), equal=equal
    )
  return 0 if equal else 1


if __name__ == '__main__':
  command.Run(Main)
