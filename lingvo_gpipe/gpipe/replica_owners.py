"""Which replica owns which variable. Pure Python.

Replicas of a partition compute with the same weights, but each variable exists
once, on the device of one of them, and its optimizer slots and averages with
it. Where the owners' shares are equal, so are what replicas take of memory for
slots, what they compute in an update, and what they send and receive (as in
ZeRO's first stage, Rajbhandari et al., arXiv 1910.02054).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class _Spec(Protocol):
  """What is looked at of a weights.VariableSpec."""

  @property
  def path(self) -> str: ...

  @property
  def num_bytes(self) -> int: ...

  @property
  def trainable(self) -> bool: ...


def Owners(specs: Sequence[_Spec], num_replicas: int) -> dict[str, int]:
  """Deals the variables of a partition out to its replicas.

  The largest variable first, each to the replica that has least. State that
  isn't trained, such as moving moments, stays with replica 0, where layers
  update it.

  Args:
    specs: of the partition's variables.
    num_replicas: R.

  Returns:
    {variable path: replica}.
  """
  owners = {spec.path: 0 for spec in specs if not spec.trainable}
  held = [0] * num_replicas
  held[0] = sum(spec.num_bytes for spec in specs if not spec.trainable)
  trained = [spec for spec in specs if spec.trainable]
  # Sorting is stable: equal ones stay in the order of the model.
  for spec in sorted(trained, key=lambda spec: -spec.num_bytes):
    replica = held.index(min(held))
    owners[spec.path] = replica
    held[replica] += spec.num_bytes
  return owners


def LargestShare(sizes: Sequence[int], num_replicas: int) -> int:
  """A bound of what the fullest replica holds of things that are dealt out.

  Bounds add up: those of cells, to one of their partition. However the cells
  are cut, no replica holds more than the mean and (R - 1) / R of the largest
  thing (Graham, 1966).

  Args:
    sizes: bytes of each.
    num_replicas: R.

  Returns:
    Bytes.
  """
  largest = max(sizes, default=0)
  return -(-(sum(sizes) + (num_replicas - 1) * largest) // num_replicas)
