"""A model's costs for any size of micro-batch, each counted once."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import gpipe, micro_batch, shared_weights
from lingvo_gpipe.gpipe.planning import cost, partition, profile_cells
from tools.plan import evaluation


class NetCosts:
  """The costs of a GPipe layer; see evaluation.Model.

  No memory is taken for the model: its cells are traced on abstract inputs.
  """

  def __init__(
    self,
    net: gpipe.GPipe,
    batch_spec: nested_map.NestedMap,
    *,
    divisible: int | None = None,
    state_specs: Mapping[str, Any] | None = None,
  ):
    """Counts nothing yet.

    Args:
      net: without a plan, or with any.
      batch_spec: of the mini-batch, [batch, ...].
      divisible: what R x M must divide, where mini-batches come in several
        sizes; None: the size of batch_spec.
      state_specs: {'<variable path>/<name>': spec} of what training adds.
    """
    self.net = net
    self.batch_size = micro_batch.BatchSize(batch_spec)
    self.divisible = divisible or self.batch_size
    self._batch_spec = nested_map.NestedMap(batch_spec)
    self.state_sizes = _StateSizes(net, state_specs or {})
    self._shared = shared_weights.Specs(
      shared_weights.Find(net.cells), net.cells
    )
    self._counted: dict[int, evaluation.Counted] = {}

  @property
  def num_cells(self) -> int:
    return len(self.net.cells)

  def Count(self, micro_batch_size: int) -> evaluation.Counted:
    """The costs for micro-batches of so many examples.

    Args:
      micro_batch_size: the number.

    Returns:
      The same object in further calls.

    Raises:
      ValueError: for a cell that does not accept what it receives.
    """
    if micro_batch_size not in self._counted:
      spec = self._MicroSpec(micro_batch_size)
      self._counted[micro_batch_size] = evaluation.Counted(
        cost.CountCells(
          self.net.cells,
          self.net.feeding.FirstSpecs(spec).carried.outputs,
          spec,
          self._shared,
        ),
        {name: micro_batch.Bytes(field) for name, field in spec.items()},
      )
    return self._counted[micro_batch_size]

  def Measure(self, micro_batch_size: int) -> list[partition.CellTime]:
    """Seconds of each cell on this process's processor.

    Args:
      micro_batch_size: examples of a micro-batch.

    Returns:
      Medians, see profile_cells.
    """
    spec = self._MicroSpec(micro_batch_size)
    return profile_cells.Measure(
      self.net.cells,
      self.net.feeding.FirstSpecs(spec),
      spec,
      self._shared,
      '/device:CPU:0',
    )

  def _MicroSpec(self, size: int) -> nested_map.NestedMap:
    return tf.nest.map_structure(
      lambda x: x and tf.TensorSpec([size, *x.shape[1:]], x.dtype),
      self._batch_spec,
    )


def _StateSizes(
  net: gpipe.GPipe, state_specs: Mapping[str, Any]
) -> list[list[int]]:
  """Bytes of what is added to the variables of each cell, one by one."""
  added = collections.defaultdict(list)
  for path, spec in state_specs.items():
    added[path.rpartition('/')[0]].append(spec.num_bytes)
  return [
    [
      size
      for variable in tf.nest.flatten(cell.VariableSpecs())
      for size in added[variable.path]
    ]
    for cell in net.cells
  ]
