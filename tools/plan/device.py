"""What a device can do, and how long work takes it. Pure Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.workers import process_memory

if TYPE_CHECKING:  # cost imports TensorFlow, which nothing here needs.
  from lingvo_gpipe.gpipe.planning import cost

_DECIMAL_UNITS = {'': 1, 'K': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12, 'P': 1e15}


@dataclasses.dataclass(frozen=True)
class Device:
  """One of several equal devices, and the links between them.

  Attributes:
    flops: floating-point operations a second that it attains; None: unknown,
      all that is asked for has been measured.
    link_speed: bytes a second between two devices, in each direction.
    link_latency: seconds until a message arrives, whatever its size.
    memory_speed: bytes a second that it reads or writes in its memory.
    memory: bytes that it has; None: no bound.
    memory_overhead: bytes that are taken before a model is there.
    cell_overhead: seconds that a cell's pass takes beside its operations.
    cell_times: {examples of a micro-batch: measured times of all cells}, used
      instead of counted operations where there are some.
  """

  flops: float | None
  link_speed: float
  link_latency: float = 0.0
  memory_speed: float = float('inf')
  memory: int | None = None
  memory_overhead: int = 0
  cell_overhead: float = 0.0
  cell_times: Mapping[int, Sequence[partition.CellTime]] = dataclasses.field(
    default_factory=dict
  )

  def __post_init__(self):
    for name in ('flops', 'link_speed', 'memory_speed'):
      value = getattr(self, name)
      if value is not None and not value > 0:
        raise ValueError(f'{name}={value} must be above 0')
    for name in ('link_latency', 'memory_overhead', 'cell_overhead'):
      if not getattr(self, name) >= 0:
        raise ValueError(f'{name}={getattr(self, name)} must not be negative')
    if self.memory is not None and self.memory <= self.memory_overhead:
      raise ValueError(
        f'a device of {process_memory.FormatSize(self.memory)} '
        '(--device_memory) has no room for a model: '
        f'{process_memory.FormatSize(self.memory_overhead)} are taken without '
        'one (--memory_overhead)'
      )

  @property
  def model_memory(self) -> int | None:
    """Bytes for a model; None: no bound."""
    return None if self.memory is None else self.memory - self.memory_overhead

  def Times(
    self, costs: Sequence[cost.CellCost], micro_batch_size: int
  ) -> list[partition.CellTime]:
    """Seconds of each cell for one micro-batch.

    Args:
      costs: of the cells, for a micro-batch of this size.
      micro_batch_size: its examples.

    Returns:
      Measured times where there are any for this size, else counted ones.

    Raises:
      ValueError: where neither are known.
    """
    if micro_batch_size in self.cell_times:
      return list(self.cell_times[micro_batch_size])
    if self.flops is None:
      raise ValueError(
        f'cells were not measured on micro-batches of {micro_batch_size}, only '
        f'of {sorted(self.cell_times)}'
      )
    return [
      partition.CellTime(
        c.forward_flops / self.flops + self.cell_overhead,
        c.backward_flops / self.flops + self.cell_overhead,
      )
      for c in costs
    ]

  def Sending(self, size: int) -> float:
    """Seconds for which a message of so many bytes occupies a link."""
    return size / self.link_speed

  def Accumulate(self, gradients: int) -> float:
    """Seconds to add a micro-batch's gradients to their sums.

    Both are read, one is written.

    Args:
      gradients: bytes.

    Returns:
      Seconds.
    """
    return 3 * gradients / self.memory_speed

  def AllReduce(self, size: int, num_replicas: int) -> float:
    """Seconds to add up gradients and to spread new weights.

    Each variable is added up by the replica that owns it, which sends what has
    become of it to the others. Owners share the work, so that each sends, and
    receives, (R - 1) / R of all bytes twice.

    Args:
      size: bytes of the gradients on a device.
      num_replicas: R.

    Returns:
      0 for one replica.
    """
    if num_replicas == 1:
      return 0.0
    share = (num_replicas - 1) / num_replicas
    return 2 * (share * self.Sending(size) + self.link_latency)

  def Update(self, weights: int, gradients: int) -> float:
    """Seconds to clear, scale and apply gradients.

    Weights and what the optimizer keeps are read and written. Sums of gradients
    are written with zeros, read and written by the division, and read for their
    norm and for the update.

    Args:
      weights: bytes of weights and of what the optimizer adds.
      gradients: bytes.

    Returns:
      Seconds.
    """
    return (2 * weights + 5 * gradients) / self.memory_speed


def ParseNumber(text: str, flag: str) -> float:
  """A number as people write large ones.

  Args:
    text: such as '123T', '25G', '3.5e12'; units are powers of 1000.
    flag: its name, for the message.

  Returns:
    The number, above 0.

  Raises:
    ValueError: where it is none, or not above 0.
  """
  stripped = text.strip()
  unit = stripped[-1:].upper()
  number = stripped[:-1] if unit in _DECIMAL_UNITS else stripped
  try:
    value = float(number) * _DECIMAL_UNITS.get(unit, 1)
  except ValueError:
    value = 0.0
  if not 0 < value < float('inf'):
    raise ValueError(
      f'--{flag}={text!r} is not a number above 0; write for example 45T, 10G '
      'or 2.5e9'
    )
  return value
