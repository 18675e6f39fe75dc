"""What the stages of a pipeline read of a mini-batch.

The first stage reads one field of the batch as its input, and every stage those
fields that its cells ask for (BATCH_FIELDS): labels need not travel along the
pipeline. Each goes from where mini-batches come from straight to the device
that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, nested_map
from lingvo_gpipe.gpipe import division
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


class Feeding:
  """Of one GPipe layer.

  Args:
    path: of the layer, for messages.
    cells: of the layer.
    input_field: name of the field that cell 0 receives.
    weights_field: name of the field with the weights of examples.
    dtype: of floating inputs.
  """

  def __init__(
    self,
    path: str,
    cells: Sequence[base_layer.BaseLayer],
    input_field: str,
    weights_field: str,
    dtype: tf.DType,
  ):
    self._path = path
    self._cells = cells
    self._input_field = input_field
    self._weights_field = weights_field
    self._dtype = dtype

  def CheckFields(self, batch: NestedMap) -> None:
    """Raises ValueError where a cell asks for a field that is not there."""
    for cell in self._cells:
      missing = sorted(set(cell.BATCH_FIELDS) - set(batch))
      if missing:
        raise ValueError(
          f'{cell.path} asks for the batch fields {", ".join(missing)} '
          f'(BATCH_FIELDS), but the batch has {", ".join(sorted(batch))}'
        )

  def Inputs(self, batch: NestedMap) -> Any:
    """What cell 0 receives of a batch.

    Args:
      batch: NestedMap of tensors or TensorSpecs.

    Returns:
      The input field, floating data of it in the dtype of the computation.

    Raises:
      ValueError: where the batch has no such field.
    """
    name = self._input_field
    if name not in batch:
      raise ValueError(
        f'{self._path}: the batch has no field {name!r} for the first cell; it '
        f'has {sorted(batch)} (param "input_field")'
      )
    return tf.nest.map_structure(self._Cast, batch[name])

  def _Cast(self, x: Any) -> Any:
    if x is None or not x.dtype.is_floating:
      return x
    if isinstance(x, tf.TensorSpec):
      return tf.TensorSpec(x.shape, self._dtype)
    return tf.cast(x, self._dtype)

  def FirstSpecs(self, micro_spec: NestedMap) -> stage_lib.OnTheWay:
    """The specs that the first stage receives.

    Args:
      micro_spec: of a micro-batch.

    Returns:
      What is on the way to it.
    """
    return stage_lib.OnTheWay(stage_lib.Carried(self.Inputs(micro_spec), {}))

  def FirstInputs(
    self, stage: stage_lib.Stage, divided: division.Division, rows: NestedMap
  ) -> Any:
    """The first stage's inputs, on its device, in micro-batches.

    Args:
      stage: the first stage of a replica.
      divided: how the mini-batch is divided.
      rows: NestedMap [rows of the replica, ...].

    Returns:
      A nest [M, micro-batch, ...].
    """
    with tf.device(stage.device):
      return divided.Split(self.Inputs(rows))

  def Fields(
    self, stage: stage_lib.Stage, divided: division.Division, rows: NestedMap
  ) -> NestedMap:
    """The batch fields of a stage, on its device, in micro-batches.

    Args:
      stage: the stage.
      divided: how the mini-batch is divided.
      rows: NestedMap [rows of the replica, ...].

    Returns:
      A NestedMap [M, micro-batch, ...].
    """
    fields = NestedMap({name: rows[name] for name in stage.batch_fields})
    with tf.device(stage.device):
      fields = divided.Split(fields)
      name = self._weights_field
      if name in fields:
        fields[name] = divided.Weighed(fields[name], stage.replica)
    return fields
