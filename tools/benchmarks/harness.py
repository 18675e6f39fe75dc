"""Measures several things so that they can be compared.

A machine is seldom equally fast for long: measuring one thing after the other
measures the hour. Here all are measured in turn, again and again, and each is
summed up by its median and quartiles.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Sample(NamedTuple):
  """One measurement.

  Attributes:
    seconds: what the call took.
    result: what it returned.
  """

  seconds: float
  result: Any


@dataclasses.dataclass(frozen=True)
class Summary:
  """Seconds of several measurements.

  Attributes:
    median: half took longer.
    lower: the lower quartile; a quarter was faster.
    upper: the upper quartile; a quarter was slower.
    count: how many measurements.
  """

  median: float
  lower: float
  upper: float
  count: int


def Alternate(
  subjects: Mapping[str, Callable[[], Any]],
  *,
  rounds: int,
  warmups: int = 1,
  progress: Callable[[str], None] = lambda text: None,
) -> dict[str, list[Sample]]:
  """Calls all subjects in turn.

  Every second round goes through them backwards, so that each comes equally
  often before and after its neighbours.

  Args:
    subjects: by name; each call must return only when its work is done.
    rounds: measured calls of each.
    warmups: rounds before these, which do not count.
    progress: told about each round.

  Returns:
    For each subject its Samples, in the order of the rounds.
  """
  if rounds < 1 or warmups < 0:
    raise ValueError(
      f'rounds={rounds} must be 1 or more, and warmups={warmups} 0 or more'
    )
  samples = {name: [] for name in subjects}
  order = list(subjects)
  for i in range(-warmups, rounds):
    start = time.perf_counter()
    for name in order if i % 2 == 0 else reversed(order):
      sample = _Measure(subjects[name])
      if i >= 0:
        samples[name].append(sample)
    which = f'round {i + 1}/{rounds}' if i >= 0 else 'warm-up round'
    progress(f'{which}: {time.perf_counter() - start:.1f} s')
  return samples


def _Measure(subject: Callable[[], Any]) -> Sample:
  start = time.perf_counter()
  result = subject()
  return Sample(time.perf_counter() - start, result)


def Summarize(seconds: Sequence[float]) -> Summary:
  """Median and quartiles of measurements.

  Args:
    seconds: one or more.

  Returns:
    Their Summary.
  """
  if len(seconds) == 1:
    return Summary(seconds[0], seconds[0], seconds[0], 1)
  lower, median, upper = statistics.quantiles(seconds, n=4, method='inclusive')
  return Summary(median, lower, upper, len(seconds))
