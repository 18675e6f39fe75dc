"""Policies of re-materialization by name: what is kept, what computed again."""

from __future__ import annotations

from collections.abc import Sequence

# From the fastest to the leanest; see stage_functions.py.
REMATERIALIZE = ('none', 'partition', 'cell')
# The fastest that fits the device's memory; see plan_search.py.
AUTO = 'auto'


def Policies(
  rematerialize: str | Sequence[str], num_partitions: int
) -> list[str]:
  """The policy of each partition.

  Args:
    rematerialize: one of REMATERIALIZE or AUTO, or one for each partition: a
      list, or as text with '+' between them.
    num_partitions: K.

  Returns:
    One of them for each.

  Raises:
    ValueError: for anything else.
  """
  text = isinstance(rematerialize, str)
  policies = rematerialize.split('+') if text else list(rematerialize)
  if text and len(policies) == 1:
    policies *= num_partitions
  known = (*REMATERIALIZE, AUTO)
  unknown = [policy for policy in policies if policy not in known]
  if unknown or len(policies) != num_partitions:
    raise ValueError(
      f'rematerialize={rematerialize!r} must be one of '
      f'{", ".join(known)}, or a list of one for each of the '
      f'{num_partitions} partitions, or these joined by "+"'
    )
  return policies


def Recompute(policies: Sequence[str]) -> list[bool]:
  """Which partitions run their forward pass twice.

  The last one keeps what it needs, unless it is to hold one cell's at a time.

  Args:
    policies: of each partition, one of REMATERIALIZE.

  Returns:
    One for each partition.
  """
  last = len(policies) - 1
  return [Recomputes(policy, k == last) for k, policy in enumerate(policies)]


def Recomputes(policy: str, is_last: bool) -> bool:
  """Whether a partition with a policy runs its forward pass twice."""
  return policy == 'cell' if is_last else policy != 'none'
