"""Flags that list pipelines to measure."""

from __future__ import annotations

import dataclasses
import itertools

from absl import flags

from lingvo_gpipe.gpipe.schedules import schedule
from tools.benchmarks import pipeline, stack_flags, stack_sizes

_WORKERS = flags.DEFINE_list(
  'workers',
  '1,2',
  'Numbers of worker processes, K, each with a partition, or --chunks of them.',
)
_MICRO_BATCHES = flags.DEFINE_list(
  'micro_batches', '8', 'Numbers of micro-batches, M; divisors of --batch.'
)
SCHEDULES = flags.DEFINE_list(
  'schedules',
  '1f1b',
  f'Schedules, of {", ".join(schedule.SCHEDULES)}. With one worker they do the '
  'same, and one is measured.',
)
_CHUNKS = flags.DEFINE_integer(
  'chunks',
  2,
  "Partitions on each worker where the schedule is 'interleaved'.",
  lower_bound=2,
)
_POLICIES = flags.DEFINE_list(
  'policies',
  'none,partition',
  'What is recomputed: none, cell, partition, or one for each partition, '
  "joined by '+', such as partition+none; these are measured where there are "
  'so many partitions.',
)
CUT = flags.DEFINE_enum(
  'cut',
  'plan',
  pipeline.CUTS,
  'plan: as GPipe cuts by itself. equal: equally many blocks for each '
  'partition.',
)
_JIT_COMPILE = flags.DEFINE_bool(
  'jit_compile', False, 'Whether XLA compiles the stages.'
)
LEARNING_RATE = flags.DEFINE_float(
  'learning_rate', 0.001, 'Of SGD.', lower_bound=0.0
)

_INTERLEAVED = 'interleaved'
_POLICY_NAMES = ('none', 'cell', 'partition')


def Configs(
  sizes: stack_sizes.Sizes, *, unrolled: bool = False
) -> list[pipeline.Config]:
  """All combinations that the flags list.

  Args:
    sizes: of the stack.
    unrolled: whether K = 1 has an unrolled twin.

  Returns:
    The Configs, in the order of the lists.

  Raises:
    ValueError: where a flag does not fit the stack or another flag.
  """
  workers = stack_flags.Integers('workers', _WORKERS.value)
  micro_batches = stack_flags.Integers('micro_batches', _MICRO_BATCHES.value)
  for m in micro_batches:
    if sizes.batch % m:
      raise ValueError(
        f'--micro_batches: {m} does not divide the {sizes.batch} examples of '
        'the mini-batch (--batch)'
      )
  for name in SCHEDULES.value:
    if name not in schedule.SCHEDULES:
      raise ValueError(
        f'--schedules: {name!r} is not one of {", ".join(schedule.SCHEDULES)}'
      )
  configs = []
  for k, m, policy in itertools.product(
    workers, micro_batches, _CheckedPolicies()
  ):
    for name in SCHEDULES.value if k > 1 else ['1f1b']:
      config = pipeline.Config(
        k,
        m,
        name,
        _CHUNKS.value if name == _INTERLEAVED else 1,
        policy,
        _JIT_COMPILE.value,
        CUT.value,
      )
      if config.num_partitions > sizes.layers:
        raise ValueError(
          f'--workers: {config.name} has {config.num_partitions} partitions, '
          f'more than the {sizes.layers} blocks (--layers)'
        )
      if len(config.policies) == config.num_partitions:
        configs.append(config)
    if k == 1 and unrolled and '+' not in policy:
      configs.append(dataclasses.replace(config, unrolled=True))
  if not configs:
    raise ValueError(
      f'--policies={",".join(_POLICIES.value)} is for other numbers of '
      f'partitions than those of --workers={",".join(_WORKERS.value)}'
    )
  return list(dict.fromkeys(configs))


def _CheckedPolicies() -> list[str]:
  for policy in _POLICIES.value:
    for part in policy.split('+'):
      if part not in _POLICY_NAMES:
        raise ValueError(
          f'--policies: {part!r} is not one of {", ".join(_POLICY_NAMES)}'
        )
  return _POLICIES.value
