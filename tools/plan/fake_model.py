"""A model of equal cells, for tests. Pure Python."""

from __future__ import annotations

from collections.abc import Sequence

from lingvo_gpipe.gpipe.planning import cost
from tools.plan import evaluation


class FakeModel:
  """Cells that take as long as their micro-batch is large; see Model.

  A cell has 10 bytes of weights, receives and sends 4 bytes, and keeps 30 bytes
  for each example. Its forward pass takes 1 operation for each, its backward
  pass 2.
  """

  def __init__(
    self, num_cells: int, batch_size: int = 8, state: Sequence[int] = ()
  ):
    """Makes the model.

    Args:
      num_cells: L.
      batch_size: N.
      state: bytes of each variable that is added to a cell's.
    """
    self.batch_size = self.divisible = batch_size
    self.num_cells = num_cells
    self.state_sizes = [list(state)] * num_cells

  def Count(self, micro_batch_size: int) -> evaluation.Counted:
    """The costs for micro-batches of so many examples."""
    return evaluation.Counted(
      [_Cost(f'c{i}', micro_batch_size) for i in range(self.num_cells)]
    )


def _Cost(name: str, micro_batch_size: int) -> cost.CellCost:
  return cost.CellCost(
    name=name,
    params=2,
    param_bytes=10,
    gradient_bytes=10,
    forward_flops=micro_batch_size,
    backward_flops=2 * micro_batch_size,
    activation_bytes=30 * micro_batch_size,
    input_bytes=4,
    output_bytes=4,
    output_spec=None,
  )
