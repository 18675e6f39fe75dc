"""What a partition holds in memory, by the shapes of its tensors.

Of a stack of L blocks, K partitions and M micro-batches of a mini-batch N a
partition that recomputes holds O(N + L/K x N/M) (paper, section 2.3): what it
received of all micro-batches in flight, and the activations of one. Temporary
tensors within a pass, and what TensorFlow itself takes, are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch
from lingvo_gpipe.gpipe.planning import cost
from lingvo_gpipe.gpipe.schedules import loop_table, schedule_table


@dataclasses.dataclass(frozen=True)
class Memory:
  """Bytes of a partition.

  Attributes:
    weights: the variables.
    gradients: sums of the gradients, and those of one micro-batch.
    stored: what waits for its backward pass: inputs, and what the policy keeps.
    activations: what the backward pass of one micro-batch reads beside that.
  """

  weights: int
  gradients: int
  stored: int
  activations: int

  @property
  def total(self) -> int:
    return self.weights + self.gradients + self.stored + self.activations


def CountCells(
  net: gpipe.GPipe, batch_spec: nested_map.NestedMap, num_micro_batches: int
) -> list[cost.CellCost]:
  """The cells' costs for one micro-batch.

  Args:
    net: with a plan or without.
    batch_spec: of the mini-batch, [batch, ...].
    num_micro_batches: M.

  Returns:
    Those of cost.CountCells.
  """
  spec = micro_batch.MicroSpecs(batch_spec, num_micro_batches)
  return cost.CountCells(net.cells, spec[net.params.input_field], spec)


def Estimate(
  costs: Sequence[cost.CellCost],
  partitions: Sequence[tuple[int, int]],
  policies: Sequence[str],
  table: schedule_table.Schedule,
) -> list[Memory]:
  """The memory of each partition.

  Args:
    costs: of the cells, for one micro-batch.
    partitions: ranges (start, end) of cells.
    policies: of each partition, 'none', 'cell' or 'partition'.
    table: the schedule.

  Returns:
    A Memory for each partition.
  """
  rows = loop_table.MakeLoopTable(table)
  last = len(partitions) - 1
  memories = []
  for k, (start, end) in enumerate(partitions):
    cells, policy = costs[start:end], policies[k]
    received = (
      table.num_micro_batches
    )  # The first one's inputs: the mini-batch.
    if k > 0:
      received = rows.Activations(k - 1, k, policy != 'none').size
    stored = received * cells[0].input_bytes
    residuals = sum(c.activation_bytes for c in cells)
    if policy == 'cell':
      borders = sum(c.input_bytes for c in cells[1:])
      stored += borders * (1 if k == last else rows.Kept(k).size)
      residuals = max(c.activation_bytes for c in cells)
    elif policy == 'none' and k < last:
      # They are what is kept; received again among them, the inputs.
      kept = rows.Kept(k).size
      stored += kept * (residuals - cells[0].input_bytes)
      if k > 0 and kept > received:
        stored += (kept - received) * cells[0].input_bytes
      residuals = 0
    weights = sum(c.param_bytes for c in cells)
    memories.append(Memory(weights, 2 * weights, stored, residuals))
  return memories
