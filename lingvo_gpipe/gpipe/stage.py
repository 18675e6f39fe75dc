"""A stage: the consecutive cells of one partition, as one pure function."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, metrics, nested_map
from lingvo_gpipe.gpipe import micro_batch

Nest = Any


class Carried(NamedTuple):
  """What one stage sends to others, or receives from them.

  Attributes:
    outputs: the nest that goes to the next cell.
    skips: {name: nest} of skip connections, which go to the cell that pops
      them.
  """

  outputs: Nest
  skips: dict[str, Nest]

  def Part(self, name: str | None) -> Nest:
    """The skip connection `name`, or the outputs for None."""
    return self.outputs if name is None else self.skips[name]


class OnTheWay:
  """What travels through stages that are gone through in order.

  Args:
    carried: what the first of them may receive.
  """

  def __init__(self, carried: Carried):
    self._outputs = carried.outputs
    self._skips = dict(carried.skips)

  @property
  def carried(self) -> Carried:
    """What is on the way now."""
    return Carried(self._outputs, self._skips)

  def Receive(self, stage: Stage) -> Carried:
    """Takes out what `stage` receives."""
    return Carried(
      self._outputs, {name: self._skips.pop(name) for name in stage.pops}
    )

  def Send(self, carried: Carried) -> None:
    """Adds what the stage makes of it."""
    self._outputs = carried.outputs
    self._skips.update(carried.skips)


class Theta(NamedTuple):
  """The weights that a stage computes with.

  Attributes:
    cells: a tree for each of its cells.
    shared: {name: tensor} of other cells' weights, see BaseLayer.UsedWeights.
  """

  cells: list[nested_map.NestedMap]
  shared: dict[str, Any]


class StageOutputs(NamedTuple):
  """What a stage makes of one micro-batch.

  Attributes:
    carried: to other stages, or the pipeline's outputs.
    statistics: {layer path: NestedMap} of sums, such as batch norm's.
    aux_losses: {name: scalar}.
    metrics: {name: WeightedSum}.
  """

  carried: Carried
  statistics: dict[str, nested_map.NestedMap]
  aux_losses: dict[str, tf.Tensor]
  metrics: dict[str, metrics.WeightedSum]

  @classmethod
  def Join(
    cls, carried: Carried, parts: Sequence[StageOutputs]
  ) -> StageOutputs:
    """The outputs of a stage that was run in parts: all of their reports."""
    reports = [{}, {}, {}]
    for part in parts:
      for merged, own in zip(reports, part[1:], strict=True):
        merged.update(own)
    return cls(carried, *reports)


@dataclasses.dataclass(frozen=True)
class Stage:
  """The cells of partition `index`, on `device`.

  Attributes:
    index: of the partition, from 0.
    first_cell: index of its first cell in the whole list.
    cells: the layers.
    device: a device string.
    padded_from: (rows, M) of mini-batches whose micro-batches are filled up;
      None: they are not. M counts those of all replicas.
    replica: of the pipeline.
  """

  index: int
  first_cell: int
  cells: tuple[base_layer.BaseLayer, ...]
  device: str
  padded_from: tuple[int, int] | None = None
  replica: int = 0

  @property
  def scope(self) -> str:
    """What names of its operations begin with; failure.py reads it."""
    replica = f'replica_{self.replica}/' if self.replica else ''
    return f'{replica}partition_{self.index}'

  @property
  def batch_fields(self) -> tuple[str, ...]:
    """Fields of the batch that the cells ask for."""
    return tuple(sorted({f for cell in self.cells for f in cell.BATCH_FIELDS}))

  @property
  def pops(self) -> tuple[str, ...]:
    """Skip connections that end here and begin in another stage."""
    stashed, popped = set(), []
    for cell in self.cells:
      popped += [name for name in cell.Pops() if name not in stashed]
      stashed.update(cell.Stashes())
    return tuple(popped)

  @property
  def stashes(self) -> tuple[str, ...]:
    """Skip connections that begin here and end in another stage."""
    popped = {name for cell in self.cells for name in cell.Pops()}
    return tuple(
      name
      for cell in self.cells
      for name in cell.Stashes()
      if name not in popped
    )

  @property
  def used_weights(self) -> tuple[str, ...]:
    """Shared weights that the cells use, see BaseLayer.UsedWeights."""
    names = {name for cell in self.cells for name in cell.UsedWeights()}
    return tuple(sorted(names))

  def Describe(self, index: int) -> str:
    """A cell for messages.

    Args:
      index: of the cell in the whole list.

    Returns:
      `cell 3 (net/norm, BatchNorm) of partition 1 on /device:CPU:1`.
    """
    cell = self.cells[index - self.first_cell]
    replica = f'of replica {self.replica} ' if self.replica else ''
    return (
      f'cell {index} ({cell.path}, {type(cell).__name__}) of partition '
      f'{self.index} {replica}on {self.device or "the default device"}'
    )

  def Slice(self, start: int, end: int) -> Stage:
    """The cells [start, end), counted from the stage's first."""
    return dataclasses.replace(
      self, first_cell=self.first_cell + start, cells=self.cells[start:end]
    )

  def FProp(
    self,
    theta: Theta,
    received: Carried,
    batch: nested_map.NestedMap,
    *,
    do_eval: bool,
    global_step: Any,
    micro_batch_index: Any,
  ) -> StageOutputs:
    """Runs the cells on one micro-batch, on the stage's device.

    Args:
      theta: the weights.
      received: the nest for the first cell, and the skip connections of `pops`.
      batch: fields of the micro-batch, those of `batch_fields` at least.
      do_eval: see FPropContext.
      global_step: see FPropContext.
      micro_batch_index: see FPropContext.

    Returns:
      The StageOutputs.

    An error of a cell keeps its type and gains a note (PEP 678) with the cell,
    the partition and the inputs.
    """
    context = fprop_context.FPropContext(
      do_eval=do_eval,
      global_step=global_step,
      micro_batch=micro_batch_index,
      stashed=dict(received.skips),
      shared_weights=theta.shared,
    )
    if self.padded_from is not None:
      with tf.device(self.device):
        context.example_weights = micro_batch.Mask(
          *self.padded_from, micro_batch_index, tf.float32
        )
    inputs = received.outputs
    with tf.device(self.device), context:
      with tf.name_scope(self.scope):
        for i, cell in enumerate(self.cells):
          inputs = self._RunCell(i, cell, theta.cells[i], inputs, batch)
    return StageOutputs(
      Carried(inputs, micro_batch.ToTensors(dict(context.stashed))),
      context.statistics,
      context.aux_losses,
      context.metrics,
    )

  def _RunCell(self, i, cell, theta, inputs, batch):
    args = [inputs]
    if cell.BATCH_FIELDS:
      args.append(
        nested_map.NestedMap({name: batch[name] for name in cell.BATCH_FIELDS})
      )
    try:
      with tf.name_scope(cell.params.name):
        return micro_batch.ToTensors(cell.FProp(theta, *args))
    except Exception as e:
      e.add_note(
        f'in {self.Describe(self.first_cell + i)}, given '
        f'{micro_batch.Specs(micro_batch.ToTensors(inputs))}'
      )
      raise

  def AbstractTheta(self, shared: dict[str, tf.TensorSpec]) -> Theta:
    """Placeholders in the current graph, to trace FProp with.

    Args:
      shared: specs of the weights of other cells, by name.

    Returns:
      The Theta.
    """
    return Theta(
      [cell.AbstractTheta() for cell in self.cells],
      micro_batch.Placeholders(
        {name: shared[name] for name in self.used_weights}
      ),
    )

  def Trace(
    self,
    received: Carried,
    batch_spec: nested_map.NestedMap,
    *,
    do_eval: bool,
    shared: dict[str, tf.TensorSpec] | None = None,
  ) -> StageOutputs:
    """The specs of FProp's results, found without running it.

    Args:
      received: Carried of TensorSpecs of one micro-batch.
      batch_spec: NestedMap of TensorSpecs of one micro-batch.
      do_eval: see FPropContext.
      shared: see AbstractTheta.

    Returns:
      StageOutputs of TensorSpecs.
    """

    with tf.Graph().as_default():
      traced = self.FProp(
        self.AbstractTheta(shared or {}),
        micro_batch.Placeholders(received),
        micro_batch.Placeholders(batch_spec),
        do_eval=do_eval,
        global_step=0,
        micro_batch_index=0,
      )
      return StageOutputs(*(micro_batch.Specs(part) for part in traced))
