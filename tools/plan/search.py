"""The fastest candidates that fit, with few of them played. Pure Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tools.plan import candidates as candidates_lib
from tools.plan import evaluation


@dataclasses.dataclass(frozen=True)
class Rejection:
  """A candidate that would do if devices had more memory, or were more.

  Attributes:
    rejected: the candidate, and what it takes.
    smallest_fitting: K from which on it fits; None: with no K.
  """

  rejected: evaluation.Rejected
  smallest_fitting: int | None


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What a search has found.

  Attributes:
    best: from the fastest on.
    rejections: a few that do not fit: of those that may be faster than the
      best, or, where nothing fits, those that come nearest to it.
    num_candidates: how many there were.
    num_evaluated: of how many memory and time were found; the others cannot be
      as fast as the best.
    num_rejected: of these, how many did not fit.
  """

  best: tuple[evaluation.Planned, ...]
  rejections: tuple[Rejection, ...]
  num_candidates: int
  num_evaluated: int
  num_rejected: int


def Search(
  evaluator: evaluation.Evaluator,
  candidates: Sequence[candidates_lib.Candidate],
  top: int,
) -> Outcome:
  """Evaluates candidates from the most promising on.

  Each has a bound that its step cannot beat. As soon as `top` steps are faster
  than the bounds of all others, those need not be looked at. A leaner policy is
  only tried where the ones before it do not fit.

  Args:
    evaluator: of the model and the devices.
    candidates: one at least; those that differ in the policy only, from the
      fastest policy on.
    top: how many are wanted.

  Returns:
    The Outcome.
  """
  pipelines: dict[candidates_lib.Candidate, list[candidates_lib.Candidate]] = {}
  for candidate in candidates:
    pipelines.setdefault(candidate.WithPolicy(''), []).append(candidate)
  bounds = {
    pipeline: min(map(evaluator.LeastSeconds, alike))
    for pipeline, alike in pipelines.items()
  }
  fitting: list[evaluation.Planned] = []
  # Those that another policy makes fit tell less.
  hopeless: list[candidates_lib.Candidate] = []
  mended: list[candidates_lib.Candidate] = []
  num_evaluated = 0
  for pipeline in sorted(pipelines, key=bounds.get):
    if len(fitting) >= top and fitting[top - 1].seconds <= bounds[pipeline]:
      break
    rejected = []
    for candidate in pipelines[pipeline]:
      num_evaluated += 1
      planned = evaluator.Evaluate(candidate)
      if planned is not None:
        fitting.append(planned)
        fitting.sort(key=lambda planned: planned.seconds)
        mended += rejected
        break
      rejected.append(candidate)
    else:
      hopeless += rejected[-1:]
      mended += rejected[:-1]
  if not fitting:
    hopeless.sort(key=evaluator.LeastMemory)
  return Outcome(
    best=tuple(fitting[:top]),
    rejections=tuple(
      Rejection(evaluator.Reject(c), evaluator.SmallestFitting(c))
      for c in _Different([*hopeless, *mended])[:top]
    ),
    num_candidates=len(candidates),
    num_evaluated=num_evaluated,
    num_rejected=len(hopeless) + len(mended),
  )


def _Different(
  rejected: Sequence[candidates_lib.Candidate],
) -> list[candidates_lib.Candidate]:
  """The first of those that differ in the number of micro-batches only."""
  kinds: dict[object, candidates_lib.Candidate] = {}
  for c in rejected:
    kinds.setdefault((c.num_replicas, c.num_devices, c.order, c.policy), c)
  return list(kinds.values())
