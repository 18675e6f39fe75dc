"""Random cells and schedules: cuts are the best there are, tables are right."""

from __future__ import annotations

import itertools
import random

from lingvo_gpipe.gpipe.planning import partition, step_simulation
from lingvo_gpipe.gpipe.schedules import loop_table, schedule

_MOST_CELLS = 10


def _Cost(rng: random.Random, kind: int) -> float:
  if kind == 0:
    return rng.randint(0, 9)
  if kind == 1:
    return rng.choice([0, 0, 1, 1000])
  if kind == 2:
    return rng.random()
  return 10.0 ** rng.randint(-12, 12)


def Partition(rng: random.Random) -> None:
  """No other cut has a smaller largest partition."""
  n = rng.randint(1, _MOST_CELLS)
  k = rng.randint(1, n)
  kind = rng.randrange(4)
  costs = [
    partition.CellTime(_Cost(rng, kind), _Cost(rng, kind)) for _ in range(n)
  ]
  recompute = None
  if rng.random() < 0.5:
    recompute = [rng.random() < 0.5 for _ in range(k)]
  cut = partition.Partition(costs, k, recompute)
  ends = [0, *(end for _, end in cut)]
  if ends[-1] != n or any(
    start != before or end <= start
    for before, (start, end) in zip(ends, cut, strict=False)
  ):
    raise AssertionError(f'{cut} is no cut of {n} cells into {k}')
  best = min(
    max(
      partition.PartitionCosts(
        costs, list(itertools.pairwise((0, *inner, n))), recompute
      )
    )
    for inner in itertools.combinations(range(1, n), k - 1)
  )
  largest = max(partition.PartitionCosts(costs, cut, recompute))
  total = sum(c.forward + c.backward for c in costs)
  if largest > best + 4 * total * 2.0**-52:
    raise AssertionError(f'{cut} of {costs}: {largest} is more than {best}')


def Schedule(rng: random.Random) -> None:
  """A table trains the model, and the loop plays it no slower than it says."""
  name = rng.choice(list(schedule.SCHEDULES))
  devices, m = rng.randint(1, 7), rng.randint(1, 20)
  chunks = rng.randint(1, 3) if name == 'interleaved' else 1
  k = devices * chunks
  table = schedule.MakeSchedule(name, k, m, devices)
  table.Check()
  in_flight = table.InFlight()
  if max(in_flight) > m or min(in_flight) < 1:
    raise AssertionError(f'{name} K={k} M={m}: in flight {in_flight}')
  rows = loop_table.MakeLoopTable(table)
  forward = [rng.randint(1, 9) for _ in range(k)]
  backward = [rng.randint(1, 9) for _ in range(k)]
  played = step_simulation.Simulate(
    rows,
    [
      step_simulation.PassSeconds(f, b)
      for f, b in zip(forward, backward, strict=True)
    ],
  )
  work = m * (sum(forward) + sum(backward))
  if abs(sum(played.busy) - work) > 1e-6 * work:
    raise AssertionError(f'{name} K={k} M={m}: {played.busy} is not all work')
  busiest = m * max(
    sum(forward[d::devices]) + sum(backward[d::devices]) for d in range(devices)
  )
  through = sum(forward) + sum(backward)
  if played.seconds < max(busiest, through) - 1e-6:
    raise AssertionError(f'{name} K={k} M={m}: {played.seconds} is impossible')
