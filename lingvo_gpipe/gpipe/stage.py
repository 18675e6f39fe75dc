"""A stage: the consecutive cells of one partition, as one pure function."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, nested_map
from lingvo_gpipe.gpipe import micro_batch

Nest = Any


class StageOutputs(NamedTuple):
  """What a stage makes of one micro-batch.

  Attributes:
    outputs: the nest that the next stage receives, or the pipeline's outputs.
    statistics: {layer path: NestedMap} of sums, such as batch norm's.
    aux_losses: {name: scalar}.
  """

  outputs: Nest
  statistics: dict[str, nested_map.NestedMap]
  aux_losses: dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Stage:
  """The cells of partition `index`, on `device`.

  Attributes:
    index: of the partition, from 0.
    first_cell: index of its first cell in the whole list.
    cells: the layers.
    device: a device string.
  """

  index: int
  first_cell: int
  cells: tuple[base_layer.BaseLayer, ...]
  device: str

  @property
  def batch_fields(self) -> tuple[str, ...]:
    """Fields of the batch that the cells ask for."""
    return tuple(sorted({f for cell in self.cells for f in cell.BATCH_FIELDS}))

  def FProp(
    self,
    theta: list[nested_map.NestedMap],
    inputs: Nest,
    batch: nested_map.NestedMap,
    *,
    do_eval: bool,
    global_step: Any,
    micro_batch_index: Any,
  ) -> StageOutputs:
    """Runs the cells on one micro-batch, on the stage's device.

    Args:
      theta: of each cell.
      inputs: the nest for the first cell.
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
      do_eval=do_eval, global_step=global_step, micro_batch=micro_batch_index
    )
    with tf.device(self.device), context:
      for i, cell in enumerate(self.cells):
        inputs = self._RunCell(i, cell, theta[i], inputs, batch)
    return StageOutputs(inputs, context.statistics, context.aux_losses)

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
        f'in cell {self.first_cell + i} ({cell.path}, {type(cell).__name__}) '
        f'of partition {self.index} on {self.device or "the default device"}, '
        f'given {micro_batch.Specs(micro_batch.ToTensors(inputs))}'
      )
      raise

  def Trace(
    self, inputs_spec: Nest, batch_spec: nested_map.NestedMap, *, do_eval: bool
  ) -> StageOutputs:
    """The specs of FProp's results, found without running it.

    Args:
      inputs_spec: nest of TensorSpecs of one micro-batch.
      batch_spec: NestedMap of TensorSpecs of one micro-batch.
      do_eval: see FPropContext.

    Returns:
      StageOutputs of TensorSpecs.
    """

    with tf.Graph().as_default():
      traced = self.FProp(
        [cell.AbstractTheta() for cell in self.cells],
        micro_batch.Placeholders(inputs_spec),
        micro_batch.Placeholders(batch_spec),
        do_eval=do_eval,
        global_step=0,
        micro_batch_index=0,
      )
      return StageOutputs(*(micro_batch.Specs(part) for part in traced))
