"""Weights that cells of different partitions share, such as tied embeddings.

A cell lends weights to others by name (BaseLayer.SharedWeights), others use
them (BaseLayer.UsedWeights). There is one variable, on the lender's device; its
value is sent once per step to each partition that uses it, and the gradients of
all uses are added up on the lender's device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import base_layer, nested_map
from lingvo_gpipe.gpipe import ordering
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


class Lender(NamedTuple):
  """Where a shared weight lives.

  Attributes:
    cell: index of the cell in the whole list.
    path: of the weight in the cell's theta, such as 'embedding.w'.
  """

  cell: int
  path: str


def Find(cells: Sequence[base_layer.BaseLayer]) -> dict[str, Lender]:
  """Where the weights that cells share live.

  Args:
    cells: all cells.

  Returns:
    {name: Lender}.

  Raises:
    ValueError: lists every name that two cells lend, that leads to no trainable
      weight, or that a cell uses and none lends.
  """
  lenders: dict[str, Lender] = {}
  faults = []
  for i, cell in enumerate(cells):
    for name, path in cell.SharedWeights().items():
      spec = cell.VariableSpecs().Get(path)
      if name in lenders:
        faults.append(
          f'{cells[lenders[name].cell].path} and {cell.path} both lend {name!r}'
        )
      elif not getattr(spec, 'trainable', False):
        faults.append(
          f'{cell.path} lends {name!r}, but has no trainable weight {path!r}'
        )
      lenders.setdefault(name, Lender(i, path))
  for cell in cells:
    faults += [
      f'{cell.path} uses {name!r}, which no cell lends'
      for name in cell.UsedWeights()
      if name not in lenders
    ]
  if faults:
    raise ValueError(
      f'shared weights that do not fit (SharedWeights, UsedWeights): '
      f'{"; ".join(faults)}'
    )
  return lenders


def Specs(
  lenders: dict[str, Lender], cells: Sequence[base_layer.BaseLayer]
) -> dict[str, tf.TensorSpec]:
  """What cells that use a weight get to see of it."""
  return {
    name: tf.TensorSpec(
      cells[lender.cell].VariableSpecs().GetItem(lender.path).shape,
      cells[lender.cell].fprop_dtype,
    )
    for name, lender in lenders.items()
  }


def ThetaOf(
  stage: stage_lib.Stage,
  theta: list[NestedMap],
  lenders: dict[str, Lender],
) -> stage_lib.Theta:
  """The weights that a stage computes with, brought to its device.

  Args:
    stage: the stage.
    theta: of all cells; where replicas share it, on any device.
    lenders: from Find.

  Returns:
    The Theta.
  """
  shared = {}
  end = stage.first_cell + len(stage.cells)
  with tf.device(stage.device):
    for name in stage.used_weights:
      lender = lenders[name]
      shared[name] = tf.identity(theta[lender.cell].GetItem(lender.path))
    # Here, so that no loop reads and sends them in every iteration.
    own = ordering.Identity(theta[stage.first_cell : end])
  return stage_lib.Theta(own, shared)


def GradientSpecs(
  stage: stage_lib.Stage,
  cells: Sequence[base_layer.BaseLayer],
  lenders: dict[str, Lender],
) -> list[tf.TensorSpec]:
  """Specs of a stage's sums of gradients; see loop_data.StageData."""
  specs = tf.nest.flatten([cell.VariableSpecs() for cell in stage.cells])
  specs = [spec for spec in specs if spec.trainable]
  for name in stage.used_weights:
    lender = lenders[name]
    specs.append(cells[lender.cell].VariableSpecs().GetItem(lender.path))
  return [tf.TensorSpec(spec.shape, spec.dtype) for spec in specs]


def GradientTree(
  stages: Sequence[stage_lib.Stage],
  gradients: Sequence[Sequence[tf.Tensor]],
  lenders: dict[str, Lender],
) -> list[Any]:
  """Gradients of all uses added up, as trees.

  Args:
    stages: of the pipeline.
    gradients: of each stage, of the specs GradientSpecs.
    lenders: from Find.

  Returns:
    For each cell a tree like its `vars`, None for weights that are not
    trainable; each gradient on its cell's device.
  """
  trees: list[Any] = []
  devices: list[str] = []
  borrowed = []
  for stage, flat in zip(stages, gradients, strict=True):
    rest = iter(flat)
    for cell in stage.cells:
      trees.append(
        tf.nest.map_structure(
          lambda spec: next(rest) if spec.trainable else None,  # noqa: B023
          cell.VariableSpecs(),
        )
      )
      devices.append(stage.device)
    borrowed += zip(stage.used_weights, rest, strict=True)
  for name, gradient in borrowed:
    lender = lenders[name]
    with tf.device(devices[lender.cell]):
      total = trees[lender.cell].GetItem(lender.path) + gradient
    trees[lender.cell].Set(lender.path, total)
  return trees
