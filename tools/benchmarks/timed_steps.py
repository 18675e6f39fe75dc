"""Measured steps as rows of a table, the same for all tools that time them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from absl import flags

from tools.benchmarks import (
  harness,
  pipeline,
  report,
  stack_flags,
  stack_sizes,
)

ROUNDS = flags.DEFINE_integer(
  'rounds', 9, 'Measured steps of each configuration.', lower_bound=1
)

# What runs, and how long it takes.
CONFIG_COLUMNS = (
  report.Column('num_devices', 'K'),
  report.Column('num_micro_batches', 'M'),
  report.Column('order', 'schedule'),
  report.Column('policy', 'recompute'),
)
TIME_COLUMNS = (
  report.Column('seconds', 's/step', report.Seconds),
  report.Column('lower', '25%', report.Seconds),
  report.Column('upper', '75%', report.Seconds),
  report.Column('tokens_per_second', 'tokens/s', report.Count),
  report.Column('speedup', 'speed-up', report.Ratio),
)
LOSS_COLUMN = report.Column('loss', 'loss', lambda x: f'{x:.6f}')


def Row(
  config: pipeline.Config,
  samples: Sequence[harness.Sample],
  sizes: stack_sizes.Sizes,
) -> dict[str, Any]:
  """What a configuration and its times alone say.

  Args:
    config: what ran.
    samples: of harness.Alternate.
    sizes: of the stack.

  Returns:
    Values by the columns' keys, without speed-up and loss.
  """
  summary = harness.Summarize([s.seconds for s in samples])
  return {
    'name': config.name,
    **dataclasses.asdict(config),
    'order': config.order,
    'seconds': summary.median,
    'lower': summary.lower,
    'upper': summary.upper,
    'all_seconds': [s.seconds for s in samples],
    'tokens_per_second': sizes.tokens_per_step / summary.median,
  }


def WriteOutput(
  rows: Sequence[dict[str, Any]], sizes: stack_sizes.Sizes
) -> None:
  """Writes rows to --output, if that is set."""
  if stack_flags.OUTPUT.value:
    report.WriteJson(
      stack_flags.OUTPUT.value, rows, sizes=sizes.ToJson(), rounds=ROUNDS.value
    )
