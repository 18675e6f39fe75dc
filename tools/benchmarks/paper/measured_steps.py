"""Measured steps of pipelines that are simulated, too."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tools.benchmarks import harness, pipeline, report, stack_sizes
from tools.benchmarks.paper import simulation

_LEARNING_RATE = 0.01


def MedianSeconds(
  pipelines: Sequence[simulation.Pipeline],
  sizes: stack_sizes.Sizes,
  devices: Sequence[str],
  rounds: int,
) -> list[float]:
  """Trains the stack with all pipelines, step by step in turn.

  Args:
    pipelines: which.
    sizes: of the stack.
    devices: of connected workers, as many as the largest K.
    rounds: measured steps of each.

  Returns:
    Median seconds of a step of each.
  """
  built = {}
  for p in pipelines:
    config = pipeline.Config(
      p.num_devices, p.num_micro_batches, schedule=p.schedule, policy=p.policy
    )
    report.Progress(f'building {config.name}')
    built[config] = pipeline.Pipeline(
      config, sizes, devices, learning_rate=_LEARNING_RATE
    )
  samples = harness.Alternate(
    {config: b.Step for config, b in built.items()},
    rounds=rounds,
    progress=report.Progress,
  )
  medians = [
    statistics.median(s.seconds for s in samples[config]) for config in built
  ]
  built.clear()
  pipeline.FreeUnused()
  return medians
