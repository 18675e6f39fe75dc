"""Which pipelines are possible on so many devices. Pure Python.

A candidate says how often the pipeline exists (R replicas), on how many devices
each time (K), into how many micro-batches (M) the part of the mini-batch that a
replica has is split, in which order passes come, and what is computed again.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from lingvo_gpipe.gpipe import num_micro_batches as num_micro_batches_lib
from lingvo_gpipe.gpipe.schedules import schedule, schedule_table

# Partitions on each device in an interleaved schedule.
CHUNKS = (2, 4)
# From the fastest to the leanest. 'auto' chooses for each partition, and fits
# where any other does; so 'partition' and 'cell' for all of them need not be
# tried.
POLICIES = ('none', 'auto', 'partition', 'cell')
_TRIED_POLICIES = ('none', 'auto')

# Larger M are not tried: the bubble is below 6% from 16 K on. With few devices
# many micro-batches may be needed to fit.
_MAX_PER_DEVICE = 16
_MAX_ANYHOW = 256


@dataclasses.dataclass(frozen=True)
class Candidate:
  """A pipeline to be judged.

  Attributes:
    num_replicas: R.
    num_devices: K, of one replica.
    num_micro_batches: M, of one replica.
    micro_batch_size: examples in each.
    schedule: name.
    num_chunks: V, partitions on each device; 1 except for 'interleaved'.
    policy: one of POLICIES, for all partitions; '' where it does not matter.
  """

  num_replicas: int
  num_devices: int
  num_micro_batches: int
  micro_batch_size: int
  schedule: str
  num_chunks: int
  policy: str

  @property
  def num_partitions(self) -> int:
    """K x V, of one replica."""
    return self.num_devices * self.num_chunks

  @property
  def order(self) -> str:
    """The schedule as a table shows it."""
    return self.schedule + (f' x{self.num_chunks}' * (self.num_chunks > 1))

  def WithPolicy(self, policy: str) -> Candidate:
    """The same with another policy; '' for what all policies share."""
    return dataclasses.replace(self, policy=policy)

  def Table(self) -> schedule_table.Schedule:
    """Who does what when."""
    return schedule.MakeSchedule(
      self.schedule,
      self.num_partitions,
      self.num_micro_batches,
      self.num_devices,
    )


@dataclasses.dataclass(frozen=True)
class Choices:
  """What may be chosen from; None: everything that is possible.

  Attributes:
    replicas: R.
    partitions: K.
    micro_batches: M.
    schedules: names.
    policies: of POLICIES.
  """

  replicas: Sequence[int] | None = None
  partitions: Sequence[int] | None = None
  micro_batches: Sequence[int] | None = None
  schedules: Sequence[str] | None = None
  policies: Sequence[str] | None = None

  def __post_init__(self):
    for flag, given, known in (
      ('schedules', self.schedules, tuple(schedule.SCHEDULES)),
      ('policies', self.policies, POLICIES),
    ):
      unknown = [name for name in given or () if name not in known]
      if unknown:
        raise ValueError(
          f'--{flag}: {unknown[0]!r} is not one of {", ".join(known)}'
        )


def Candidates(
  num_devices: int,
  num_cells: int,
  batch_size: int,
  choices: Choices | None = None,
  *,
  divisible: int | None = None,
) -> list[Candidate]:
  """All that could be chosen.

  R divides the mini-batch, and M the part of it that a replica has. K is as
  large as R and the cells allow, or half of that, or a quarter, and so on.

  Args:
    num_devices: how many there are.
    num_cells: L.
    batch_size: N, examples of the mini-batch.
    choices: None for all.
    divisible: what R x M must divide, a divisor of N; None: N.

  Returns:
    The candidates, each once.

  Raises:
    ValueError: for numbers below 1, and where nothing is possible.
  """
  choices = choices or Choices()
  if num_devices < 1:
    raise ValueError(f'--num_devices={num_devices} must be 1 or more')
  if batch_size < 1:
    raise ValueError(f'a mini-batch of {batch_size} examples cannot be split')
  divisible = divisible or batch_size
  replicas = [
    r for r in num_micro_batches_lib.Divisors(divisible) if r <= num_devices
  ]
  replicas = _Chosen(
    'replicas',
    choices.replicas,
    replicas,
    (
      f'numbers of replicas that divide the mini-batch of {divisible} and are '
      f'at most the {num_devices} devices'
    ),
  )
  found = []
  refused = ''
  for r in replicas:
    limit = min(num_devices // r, num_cells)
    if choices.partitions is None:
      counts = _Halves(limit)
    else:
      counts = [k for k in choices.partitions if 1 <= k <= limit]
    micro_batches = num_micro_batches_lib.Divisors(divisible // r)
    if choices.micro_batches is not None:
      micro_batches = [m for m in micro_batches if m in choices.micro_batches]
    for k, m in itertools.product(counts, micro_batches):
      if choices.micro_batches is None and m > max(
        _MAX_PER_DEVICE * k, _MAX_ANYHOW
      ):
        continue
      for name, chunks in _Orders(k, m, num_cells, choices.schedules):
        for policy in _Policies(k * chunks, choices.policies):
          found.append(
            Candidate(r, k, m, batch_size // r // m, name, chunks, policy)
          )
    if not counts:
      refused = refused or (
        f'no K of --partitions={_Join(choices.partitions)} is at most {limit}: '
        f'{num_devices} devices, {r} replicas and {num_cells} cells allow no '
        'more'
      )
    elif not micro_batches:
      refused = refused or (
        f'no M of --micro_batches={_Join(choices.micro_batches)} divides the '
        f'{divisible // r} examples that a replica has of the mini-batch of '
        f'{divisible}; use some of '
        f'{_Join(num_micro_batches_lib.Divisors(divisible // r))}'
      )
  if not found:
    raise ValueError(refused or 'the flags leave nothing to choose from')
  return found


def _Chosen(
  flag: str, wanted: Sequence[int] | None, possible: list[int], what: str
) -> list[int]:
  if wanted is None:
    return possible
  chosen = [value for value in possible if value in wanted]
  if not chosen:
    raise ValueError(
      f'--{flag}={_Join(wanted)}: the {what} are {_Join(possible)}'
    )
  return chosen


def _Halves(limit: int) -> list[int]:
  """The limit, half of it, and so on, down to 1."""
  counts = []
  while limit:
    counts.append(limit)
    limit //= 2
  return counts


def _Orders(
  num_devices: int,
  num_micro_batches: int,
  num_cells: int,
  wanted: Sequence[str] | None,
) -> Iterator[tuple[str, int]]:
  """(schedule, chunks); one where all do the same."""
  names = tuple(wanted or schedule.SCHEDULES)
  if num_devices == 1 or num_micro_batches == 1:
    plain = [name for name in names if name != 'interleaved']
    yield ('1f1b' if '1f1b' in names or not plain else plain[0]), 1
    return
  for name in names:
    if name != 'interleaved':
      yield name, 1
      continue
    for chunks in CHUNKS:
      if chunks * num_devices <= num_cells:
        yield name, chunks


def _Policies(num_partitions: int, wanted: Sequence[str] | None) -> list[str]:
  names = [name for name in POLICIES if name in (wanted or _TRIED_POLICIES)]
  if num_partitions == 1 and 'none' in names and 'partition' in names:
    names.remove('partition')  # The last partition computes nothing again.
  return names


def _Join(values: Sequence[int]) -> str:
  return ','.join(map(str, values))


def LeastSeconds(
  candidate: Candidate, forward: float, backward: float
) -> float:
  """A bound that no cut of the cells beats.

  Two things take time whatever the cut. The busiest device has at least the
  mean of all work. And a micro-batch goes through all partitions and back;
  after that the last partition has M - 1 others to compute, or those before
  have M - 1 backward passes: the smaller the one is, the larger the other.

  Args:
    candidate: the pipeline.
    forward: seconds of all cells for one micro-batch.
    backward: likewise, without any recomputation.

  Returns:
    Seconds.
  """
  total, m = forward + backward, candidate.num_micro_batches
  if not total:
    return 0.0
  others = candidate.num_partitions - 1
  # The last partition takes x seconds for a micro-batch, and the largest of the
  # others at least (backward - x backward / total) / others for going back.
  pace = backward / (others + backward / total)
  work = total / candidate.num_devices
  if candidate.policy in ('partition', 'cell'):
    # Only the last partition may do without, and so all that its device has.
    again = total + forward
    work = 1 / ((candidate.num_devices - 1) / again + 1 / total)
  return max(m * work, total + (m - 1) * (pace if others else total))
