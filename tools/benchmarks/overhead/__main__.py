"""Where the time of a step goes, beside the GPipe paper's breakdown.

  python -m tools.benchmarks.overhead --output_dir=/tmp/overhead

Steps of a Transformer stack on worker processes, from what the devices record
of each pass. The paper's figures are of two partitions; it does not say of
which model, nor of how many micro-batches.
"""

from __future__ import annotations

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command, report, stack_flags
from tools.benchmarks.overhead import breakdown, picture
from tools.benchmarks.paper import choices, output, published

_WORKERS = flags.DEFINE_list('workers', '2', 'Numbers of workers, K.')
_MICRO_BATCHES = flags.DEFINE_list(
  'micro_batches', '8,32', 'Numbers of micro-batches, M; divisors of --batch.'
)
_SCHEDULES = flags.DEFINE_list(
  'schedules', 'gpipe,1f1b', 'Of gpipe, 1f1b, eager_1f1b.'
)
_POLICIES = flags.DEFINE_list(
  'policies', 'partition', 'What is computed again: none, partition, cell.'
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 9, 'Measured steps of each pipeline.', lower_bound=1
)
_LEARNING_RATE = 0.01

_COLUMNS = (
  report.Column('name', 'pipeline'),
  report.Column('seconds', 's/step', report.Seconds),
  *(report.Column(part, part, report.Percent) for part in breakdown.PARTS),
)


def Main() -> int:
  """The tool; returns the exit status."""
  choices.Check(_SCHEDULES, ('gpipe', '1f1b', 'eager_1f1b'))
  choices.Check(_POLICIES, ('none', 'partition', 'cell'))
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    workers = stack_flags.Integers('workers', _WORKERS.value)
    micro_batches = stack_flags.Integers('micro_batches', _MICRO_BATCHES.value)
  uneven = [m for m in micro_batches if sizes.batch % m]
  if uneven:
    raise user_error.UserError(
      f'--micro_batches: {uneven[0]} does not divide the mini-batch of '
      f'{sizes.batch} (--batch)'
    )
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help and bad flags do without.
  from tools.benchmarks import pipeline
  from tools.benchmarks.overhead import runs

  rows = runs.Measure(
    [
      pipeline.Config(k, m, schedule=schedule, policy=policy)
      for k in workers
      for m in micro_batches
      for schedule in _SCHEDULES.value
      for policy in _POLICIES.value
    ],
    sizes,
    rounds=_ROUNDS.value,
    learning_rate=_LEARNING_RATE,
  )
  for row in rows:
    row['name'] = (
      f'K={row["num_devices"]} M={row["num_micro_batches"]} {row["order"]} '
      f'{row["policy"]}'
    )
  section = output.Section(
    'breakdown',
    "Shares of the devices' time.",
    _COLUMNS,
    [{'name': 'paper, K=2', **published.BREAKDOWN}, *rows],
  )
  output.Write('overhead', [section], picture.Draw, sizes=sizes.ToJson())
  return 0


if __name__ == '__main__':
  command.Run(Main)
