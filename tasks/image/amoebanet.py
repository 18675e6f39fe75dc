"""AmoebaNet as a list of cells for GPipe.

  stem   3x3 convolution and two reduction cells of D/4 and D/2 filters; for
         small images the convolution alone, with stride 1
  body   L normal cells in three groups of D, 2D and 4D filters, a reduction
         cell between groups
  head   ReLU, global average pooling, dropout, dense, softmax cross entropy

AmoebaNet-D (L, D) of the GPipe paper's Table 1 is

  AmoebaNetCells(num_layers=L, num_filters=D, image_size=224, ...)

Cells hand on pairs (output, skip); see amoebanet_cell.py.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import dropout, norm
from tasks.image import (
  amoebanet_cell,
  amoebanet_ops,
  auxiliary_head,
  classifier_head,
)

_Params = hyperparams.InstantiableParams


class Stem(base_layer.BaseLayer):
  """The first cell: images to (a 3x3 convolution with batch norm, None)."""

  @classmethod
  def Params(cls) -> _Params:
    p = super().Params()
    p.params_init = amoebanet_cell.KernelInit()
    p.Define('input_dim', 3, 'Channels of the images.')
    p.Define('output_dim', 32, 'Channels of the outputs.')
    p.Define('stride', 2, 'Of the convolution; 2 also leaves out the border.')
    p.Define('norm', norm.BatchNorm.Params(), 'Decay and epsilon.')
    return p

  def __init__(self, params: _Params):
    super().__init__(params)
    p = self.params
    self.CreateChild(
      'conv',
      amoebanet_ops.ConvNorm(
        p.norm,
        p.params_init,
        p.input_dim,
        p.output_dim,
        size=(3, 3),
        stride=(p.stride, p.stride),
        relu=False,
        padding='VALID' if p.stride > 1 else 'SAME',
      ),
    )

  def FProp(
    self, theta: nested_map.NestedMap, inputs: tf.Tensor
  ) -> tuple[tf.Tensor, None]:
    """[batch, h, w, input_dim] -> ([batch, new h, new w, output_dim], None)."""
    return self.conv.FProp(theta.conv, inputs), None


def AmoebaNetCells(
  *,
  num_layers: int,
  num_filters: int,
  image_size: int,
  num_classes: int,
  genotype: str = 'amoebanet_d',
  small_images: bool = False,
  input_channels: int = 3,
  stem_filters: int = 32,
  keep_prob: float = 0.5,
  label_smoothing: float = 0.0,
  aux_loss_weight: float = 0.0,
  drop_path_keep_prob: float = 1.0,
  drop_path_by_depth: bool = False,
  drop_path_ramp_steps: int = 0,
  mixup: bool = False,
  batch_norm: _Params | None = None,
) -> list[_Params]:
  """The cells of an AmoebaNet.

  Args:
    num_layers: L, the number of normal cells, 3 or more.
    num_filters: D, filters of the first group of normal cells, 16 or more (4
      with small_images).
    image_size: height and width of the images.
    num_classes: of the classifier.
    genotype: 'amoebanet_d', 'amoebanet_b' or another of genotypes.GENOTYPES.
    small_images: whether the stem keeps the images' size (8x8, 32x32) instead
      of dividing it by 8.
    input_channels: of the images.
    stem_filters: of the stem's convolution.
    keep_prob: of the dropout before the classifier.
    label_smoothing: of both heads.
    aux_loss_weight: of the auxiliary head before the second reduction; 0: none.
    drop_path_keep_prob: of the operations of the cells; 1: no drop path.
    drop_path_by_depth: whether the probability to drop grows with the depth of
      the cell, from almost none to 1 - drop_path_keep_prob in the last.
    drop_path_ramp_steps: the probability to drop grows from 0 over so many
      steps; 0: it does not grow.
    mixup: whether training images are mixtures of two, see
      softmax_loss.BatchLoss.
    batch_norm: params with the decay and epsilon of all batch norms; None: the
      defaults.

  Returns:
    Params of the cells, to be GPipe's `cells`.
  """
  if num_layers < 3:
    raise ValueError(
      f'num_layers={num_layers} must be 3 or more: the normal cells form three '
      'groups'
    )
  # Stem cells have a quarter of the filters, bottlenecks a quarter of a cell's.
  min_filters = 4 if small_images else 16
  if num_filters < min_filters:
    raise ValueError(f'num_filters={num_filters} must be {min_filters} or more')
  batch_norm = batch_norm or norm.BatchNorm.Params()
  stem = Stem.Params().Set(
    name='stem',
    input_dim=input_channels,
    output_dim=stem_filters,
    stride=1 if small_images else 2,
    norm=batch_norm.Copy(),
  )
  body = _Body(
    genotype=genotype,
    drop_path=dropout.DropPath.Params().Set(
      keep_prob=drop_path_keep_prob, ramp_steps=drop_path_ramp_steps
    ),
    batch_norm=batch_norm,
    dim=stem_filters,
    size=image_size if small_images else (image_size - 3) // 2 + 1,
    cells=[],
  )
  if not small_images:
    body.Add('stem_reduction_0', num_filters // 4, reduction=True)
    body.Add('stem_reduction_1', num_filters // 2, reduction=True)
  group, filters = 0, num_filters
  reduce_before = [num_layers // 3, 2 * num_layers // 3]
  auxiliary = None
  for i in range(num_layers):
    if i in reduce_before:
      if i == reduce_before[1] and aux_loss_weight:
        auxiliary = len(body.cells), body.dim, body.size
      filters *= 2
      body.Add(f'reduction_{group}', filters, reduction=True)
      group += 1
    body.Add(f'normal_{i:02d}', filters)
  if drop_path_by_depth:
    for i, cell in enumerate(body.cells):
      share = (i + 1) / len(body.cells)
      cell.drop_path.keep_prob = 1.0 - share * (1.0 - drop_path_keep_prob)
  if auxiliary:
    place, dim, size = auxiliary
    body.cells.insert(
      place,
      auxiliary_head.AuxiliaryHead.Params().Set(
        name='auxiliary_head',
        input_dim=dim,
        image_size=size,
        num_classes=num_classes,
        weight=aux_loss_weight,
        label_smoothing=label_smoothing,
        mixup=mixup,
        norm=batch_norm.Copy(),
      ),
    )
  head = classifier_head.ClassifierHead.Params().Set(
    name='head',
    input_dim=body.dim,
    num_classes=num_classes,
    keep_prob=keep_prob,
    label_smoothing=label_smoothing,
    mixup=mixup,
  )
  return [stem, *body.cells, head]


@dataclasses.dataclass
class _Body:
  """Cells so far, and what the next one will receive.

  Attributes:
    genotype: of all cells.
    drop_path: of all cells.
    batch_norm: of all cells.
    dim: channels of the last output.
    size: its height and width.
    cells: params of the cells.
    skip_dim: channels of the skip; None at the start.
    skip_stride: how many times larger its image is.
  """

  genotype: str
  drop_path: _Params
  batch_norm: _Params
  dim: int
  size: int
  cells: list[_Params]
  skip_dim: int | None = None
  skip_stride: int = 1

  def Add(self, name: str, filters: int, *, reduction: bool = False) -> None:
    """Appends a cell."""
    self.cells.append(
      amoebanet_cell.AmoebaNetCell.Params().Set(
        name=name,
        genotype=self.genotype,
        reduction=reduction,
        input_dim=self.dim,
        skip_dim=self.skip_dim,
        skip_stride=self.skip_stride,
        num_filters=filters,
        drop_path=self.drop_path.Copy(),
        norm=self.batch_norm.Copy(),
      )
    )
    self.skip_dim, self.skip_stride = self.dim, 2 if reduction else 1
    self.dim = amoebanet_cell.OutputDim(self.genotype, reduction, filters)
    if reduction:
      self.size = (self.size + 1) // 2
