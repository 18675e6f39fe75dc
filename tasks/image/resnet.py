"""ResNet v1.5 as a list of cells for GPipe.

  stem    7x7 convolution and 3x3 max pooling, each of stride 2; for small
          images a 3x3 convolution of stride 1 alone
  groups  bottleneck blocks, one a cell: four groups of 64, 128, 256 and 512
          filters, each after the first halves the image
  head    global average pooling, dropout, dense, softmax cross entropy

ResNet-50 for ImageNet is

  ResNetCells(depth=50, num_classes=1000)

It takes images of any size.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from tasks.image import classifier_head, resnet_block

_Params = hyperparams.InstantiableParams

# Blocks of each group by the number of layers.
NUM_BLOCKS = {
  50: (3, 4, 6, 3),
  101: (3, 4, 23, 3),
  152: (3, 8, 36, 3),
}

# Filters of the stem and of the first group.
_NUM_FILTERS = 64


class Stem(base_layer.BaseLayer):
  """The first cell: images to features of a quarter of their size."""

  @classmethod
  def Params(cls) -> _Params:
    p = super().Params()
    p.params_init = resnet_block.KernelInit()
    p.Define('input_dim', 3, 'Channels of the images.')
    p.Define('output_dim', _NUM_FILTERS, 'Channels of the outputs.')
    p.Define(
      'small_images',
      False,
      'Whether the outputs have the size of the images: a 3x3 convolution.',
    )
    p.Define('norm', resnet_block.DefaultNorm(), 'Decay and epsilon.')
    return p

  def __init__(self, params: _Params):
    super().__init__(params)
    p = self.params
    size, stride = (3, 1) if p.small_images else (7, 2)
    self.CreateChild(
      'conv',
      resnet_block.ConvNorm(
        p.norm, p.input_dim, p.output_dim, size=size, stride=stride
      ),
    )

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the cell.

    Args:
      theta: of the convolution.
      inputs: [batch, h, w, input_dim].

    Returns:
      [batch, ceil(h / 4), ceil(w / 4), output_dim]; of height h and width w
      with small_images.
    """
    if self.params.small_images:
      return self.conv.FProp(theta.conv, inputs)
    x = self.conv.FProp(theta.conv, resnet_block.Padded(inputs, 7))
    # Zeros win no maximum: after the ReLU nothing is below them.
    return tf.nn.max_pool2d(resnet_block.Padded(x, 3), 3, 2, 'VALID')


def ResNetCells(
  *,
  num_classes: int,
  depth: int = 50,
  num_blocks: Sequence[int] | None = None,
  width: float = 1.0,
  small_images: bool = False,
  input_channels: int = 3,
  zero_start: bool = True,
  keep_prob: float = 1.0,
  label_smoothing: float = 0.0,
  mixup: bool = False,
  batch_norm: _Params | None = None,
) -> list[_Params]:
  """The cells of a ResNet.

  Args:
    num_classes: of the classifier.
    depth: 50, 101 or 152, the number of layers with weights.
    num_blocks: blocks of each group, in place of those of `depth`; filters
      double from group to group, however many there are.
    width: all numbers of filters are multiplied by it.
    small_images: whether the stem keeps the images' size (32x32) instead of
      dividing it by 4.
    input_channels: of the images.
    zero_start: whether blocks start as their shortcuts, see
      resnet_block.BottleneckBlock.
    keep_prob: of the dropout before the classifier.
    label_smoothing: of the loss.
    mixup: whether training images are mixtures of two, see
      softmax_loss.BatchLoss.
    batch_norm: params with the decay and epsilon of all batch norms; None:
      those of resnet_block.DefaultNorm.

  Returns:
    Params of the cells, to be GPipe's `cells`.

  Raises:
    ValueError: for sizes that make no network.
  """
  if num_blocks is None:
    if depth not in NUM_BLOCKS:
      raise ValueError(
        f'depth={depth} is none of {", ".join(map(str, NUM_BLOCKS))}: use one '
        'of them, or say num_blocks'
      )
    num_blocks = NUM_BLOCKS[depth]
  if not num_blocks or min(num_blocks) < 1:
    raise ValueError(f'num_blocks={num_blocks} must be positive numbers')
  filters = round(_NUM_FILTERS * width)
  if filters < 1:
    raise ValueError(f'width={width} leaves no filters of {_NUM_FILTERS}')
  batch_norm = batch_norm or resnet_block.DefaultNorm()
  cells = [
    Stem.Params().Set(
      name='stem',
      input_dim=input_channels,
      output_dim=filters,
      small_images=small_images,
      norm=batch_norm.Copy(),
    )
  ]
  dim = filters
  for group, size in enumerate(num_blocks):
    for i in range(size):
      cells.append(
        resnet_block.BottleneckBlock.Params().Set(
          name=f'group_{group}_block_{i:02d}',
          input_dim=dim,
          num_filters=filters,
          stride=2 if group and not i else 1,
          zero_start=zero_start,
          norm=batch_norm.Copy(),
        )
      )
      dim = resnet_block.EXPANSION * filters
    filters *= 2
  head = classifier_head.ClassifierHead.Params().Set(
    name='head',
    input_dim=dim,
    num_classes=num_classes,
    keep_prob=keep_prob,
    label_smoothing=label_smoothing,
    mixup=mixup,
  )
  return [*cells, head]
