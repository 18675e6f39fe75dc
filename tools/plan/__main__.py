"""Plans a pipeline: what fits devices of a given memory and is the fastest.

  python -m tools.plan --model=mt.multilingual.T64x16384x32 --num_devices=16 \\
      --device_memory=16G --device_flops=20T --link_speed=10G

Nothing is trained, and no memory is taken for the model. Exit status: 0 there
is a plan, 1 nothing fits, 2 the command is wrong.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from typing import Any

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from lingvo_gpipe.jobs import flags as job_flags
from lingvo_gpipe.workers import process_memory
from tools.benchmarks import command, stack_flags
from tools.benchmarks import report as tools_report
from tools.plan import candidates as candidates_lib
from tools.plan import device as device_lib
from tools.plan import evaluation, report, search

FLAGS = flags.FLAGS

# The trainer's, with the trainer's meaning.
for _name in ('model', 'model_params_override', 'import'):
  flags.declare_key_flag(_name)

_NUM_DEVICES = flags.DEFINE_integer(
  'num_devices', 0, 'How many devices there are; a plan may use fewer.'
)
_DEVICE_MEMORY = flags.DEFINE_string(
  'device_memory',
  '',
  'Memory of each, such as 16G (units are powers of 1024). Empty: no bound.',
)
_DEVICE_FLOPS = flags.DEFINE_string(
  'device_flops',
  '',
  'Floating-point operations a second that a device attains, such as 20T. That '
  'is less than the data sheet says: a third to a half is good.',
)
_LINK_SPEED = flags.DEFINE_string(
  'link_speed',
  '',
  'Bytes a second between two devices in each direction, such as 10G.',
)
_LINK_LATENCY = flags.DEFINE_float(
  'link_latency',
  0.0,
  'Seconds until a message arrives, beside what its bytes take.',
  lower_bound=0.0,
)
_MEMORY_SPEED = flags.DEFINE_string(
  'memory_speed',
  '',
  'Bytes a second that a device reads or writes in its memory, such as 800G, '
  'for the update of the weights. Empty: it takes no time.',
)
_MEMORY_OVERHEAD = flags.DEFINE_string(
  'memory_overhead',
  '0.5G',
  'Part of the memory that is taken whatever the model: TensorFlow itself, and '
  'what its first step adds.',
)
_CELL_OVERHEAD = flags.DEFINE_float(
  'cell_overhead',
  1e-4,
  'Seconds that each pass of a cell takes beside its operations, such as to '
  'start kernels: makes many small micro-batches dear.',
  lower_bound=0.0,
)
_MEASURE = flags.DEFINE_boolean(
  'measure',
  False,
  'Plan for --local_workers of this machine. What cells and the links between '
  'workers take is measured, which runs each kind of cell for some seconds '
  'for each size of micro-batch; see --micro_batches.',
)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size',
  0,
  'Examples in a mini-batch (input.batch_size). 0: what the model says.',
  lower_bound=0,
)
_REPLICAS = flags.DEFINE_list('replicas', [], 'Only these R.')
_PARTITIONS = flags.DEFINE_list(
  'partitions', [], 'Only these K, devices of a replica.'
)
_MICRO_BATCHES = flags.DEFINE_list('micro_batches', [], 'Only these M.')
_SCHEDULES = flags.DEFINE_list('schedules', [], 'Only these schedules.')
_POLICIES = flags.DEFINE_list(
  'policies',
  [],
  'Only these policies of re-materialization: none, partition, cell, or auto, '
  'which chooses for each partition.',
)
_TOP = flags.DEFINE_integer(
  'top', 5, 'How many plans are shown.', lower_bound=1
)
_JSON = flags.DEFINE_string(
  'json', '', 'File to write everything to as JSON. Empty: none.'
)


def Main() -> int:
  """The tool."""
  with user_error.Expected(ValueError):
    choices = _Choices()
    device = _Device()
  if _NUM_DEVICES.value < 1:
    raise user_error.UserError(
      f'--num_devices={_NUM_DEVICES.value} must be 1 or more'
    )
  if not FLAGS.model:
    raise user_error.UserError(
      '--model is missing: name a registered model, such as '
      '--model=lm.table1.TransformerL103'
    )
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from tools.plan import measure, registered_model

  if _MEASURE.value:
    measure.UseOneThread()
  model = registered_model.Load(
    job_flags.Options(
      model=FLAGS.model,
      model_params_override=FLAGS.model_params_override,
      imports=tuple(FLAGS['import'].value),
    ),
    _BATCH_SIZE.value,
  )
  with user_error.Expected(ValueError):
    candidates = candidates_lib.Candidates(
      _NUM_DEVICES.value,
      model.num_cells,
      model.batch_size,
      choices,
      divisible=model.divisible,
    )
    if _MEASURE.value:
      device = measure.Device(
        model,
        {c.micro_batch_size for c in candidates},
        tools_report.Progress,
        num_workers=_NUM_DEVICES.value,
        memory=device.memory,
      )
    started = time.monotonic()
    evaluator = evaluation.Evaluator(model, device)
    outcome = search.Search(evaluator, candidates, _TOP.value)
  seconds = time.monotonic() - started
  _Print(outcome, device, model, seconds)
  if _JSON.value:
    _Write(outcome, device, model)
  return 0 if outcome.best else user_error.TrainingError.EXIT_STATUS


def _Choices() -> candidates_lib.Choices:
  def _Numbers(flag: flags.FlagHolder) -> list[int] | None:
    if not flag.value:
      return None
    return stack_flags.Integers(flag.name, flag.value)

  return candidates_lib.Choices(
    replicas=_Numbers(_REPLICAS),
    partitions=_Numbers(_PARTITIONS),
    micro_batches=_Numbers(_MICRO_BATCHES),
    schedules=_SCHEDULES.value or None,
    policies=_POLICIES.value or None,
  )


def _Device() -> device_lib.Device:
  """The device of the flags; of --measure only what is not measured."""

  def _Number(flag: flags.FlagHolder, default: float | None) -> float:
    if flag.value:
      return device_lib.ParseNumber(flag.value, flag.name)
    if default is None and not _MEASURE.value:
      raise ValueError(
        f'--{flag.name} is missing: say what devices can do, or use --measure '
        'to plan for worker processes of this machine'
      )
    return default or 1.0

  def _Bytes(flag: flags.FlagHolder) -> int:
    with user_error.Expected(ValueError, prefix=f'--{flag.name}: '):
      return process_memory.ParseSize(flag.value)

  return device_lib.Device(
    flops=_Number(_DEVICE_FLOPS, None),
    link_speed=_Number(_LINK_SPEED, None),
    link_latency=_LINK_LATENCY.value,
    memory_speed=_Number(_MEMORY_SPEED, float('inf')),
    memory=_Bytes(_DEVICE_MEMORY) if _DEVICE_MEMORY.value else None,
    memory_overhead=_Bytes(_MEMORY_OVERHEAD),
    cell_overhead=_CELL_OVERHEAD.value,
  )


def _Print(outcome, device, model, seconds: float) -> None:
  names = [cell.params.name for cell in model.net.cells]
  print(
    f'{FLAGS.model}: {model.num_cells} cells, mini-batch {model.batch_size}; '
    f'{outcome.num_candidates:,} pipelines on {_NUM_DEVICES.value} devices, '
    f'{outcome.num_evaluated:,} looked at in {seconds:.1f} s, of which '
    f'{outcome.num_rejected:,} do not fit'
  )
  if outcome.best:
    print(f'\nThe fastest that fit:\n{report.BestText(outcome.best)}')
    best = outcome.best[0]
    print(f'\nThe first one:\n{report.DeviceText(best, names)}')
  if outcome.rejections:
    heading = (
      'Perhaps faster, but too large'
      if outcome.best
      else 'Nothing fits; nearest'
    )
    print(f'\n{heading}:')
    print(report.RejectionText(outcome.rejections, device.memory))
  if outcome.best:
    print(f'\nTo train with the first one:\n{_Command(outcome)}')


def _Command(outcome: search.Outcome) -> str:
  overrides = FLAGS.model_params_override
  if _BATCH_SIZE.value:
    size = f'input.batch_size={_BATCH_SIZE.value}'
    overrides = f'{overrides};{size}' if overrides else size
  imports = FLAGS['import'].value
  return report.Command(
    outcome.best[0],
    FLAGS.model,
    local_workers=_MEASURE.value,
    overrides=overrides,
    other_flags=[f'--import={",".join(imports)}'] if imports else [],
  )


def _Write(outcome, device, model) -> None:
  plain: dict[str, Any] = report.ToJson(
    outcome,
    _Command(outcome) if outcome.best else None,
    model=FLAGS.model,
    num_devices=_NUM_DEVICES.value,
    batch_size=model.batch_size,
    device=dataclasses.asdict(device),
  )
  path = os.path.join(
    os.environ.get('BUILD_WORKING_DIRECTORY', ''), _JSON.value
  )
  with open(path, 'w', encoding='utf-8') as f:
    json.dump(plain, f, indent=2)
    f.write('\n')


if __name__ == '__main__':
  command.Run(Main)
