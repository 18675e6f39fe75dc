"""Near spellings of a wrong name, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CUTOFF = 0.6
_MAX_LISTED = 20


def _Plain(name: str) -> str:
  return name.lower().replace('_', '').replace('-', '')


def _Similarity(name: str, candidate: str) -> float:
  """1 for the same letters, about 0 for nothing in common."""
  name, candidate = _Plain(name), _Plain(candidate)
  if name == candidate:
    return 1.0
  matcher = difflib.SequenceMatcher(None, name, candidate)
  score = matcher.ratio()
  # Dotted names are often given without their beginning.
  unused_head, dot, tail = candidate.rpartition('.')
  if dot:
    own_tail = name.rpartition('.')[2]
    score = max(
      score, 0.95 * difflib.SequenceMatcher(None, own_tail, tail).ratio()
    )
  if len(name) >= 3 and (name in candidate or candidate in name):
    score = max(score, 0.7)
  return score


def NearNames(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
  """The names that `name` may have been meant to be, nearest first.

  Args:
    name: the wrong one.
    names: those that exist.
    limit: how many to return at most.

  Returns:
    Up to `limit` names; case, underscores and, in dotted names, a missing
    beginning count little.
  """
  scored = [(_Similarity(name, candidate), candidate) for candidate in names]
  near = sorted((-s, c) for s, c in scored if s >= _CUTOFF)
  return [candidate for unused_score, candidate in near[:limit]]


def _Or(names: list[str]) -> str:
  quoted = [repr(n) for n in names]
  return ' or '.join(filter(None, [', '.join(quoted[:-1]), quoted[-1]]))


def Hint(name: str, names: Iterable[str], what: str = 'names') -> str:
  """The end of an error message: near spellings, else what there is.

  Args:
    name: the wrong one.
    names: those that exist.
    what: what they are, in the plural.

  Returns:
    For example "; did you mean 'name' or 'dtype'?".
  """
  names = sorted(names)
  near = NearNames(name, names)
  if near:
    return f'; did you mean {_Or(near)}?'
  if not names:
    return f'; there are no {what}'
  listed = ', '.join(names[:_MAX_LISTED])
  more = len(names) - _MAX_LISTED
  return f'; the {what} are: {listed}' + (f' and {more} more' * (more > 0))
