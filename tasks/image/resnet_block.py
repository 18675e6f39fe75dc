"""The bottleneck block of ResNet v1.5, a cell of its own."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import conv, conv_norm, norm

NestedMap = nested_map.NestedMap

# Channels of a block's output for each one of its 3x3 convolution.
EXPANSION = 4


def KernelInit() -> hyperparams.Params:
  """How convolutions start: He's normal, variance 2 / fan_out."""
  return base_layer.WeightInit.VarianceScaling(2.0, 'fan_out', 'normal')


def DefaultNorm() -> hyperparams.InstantiableParams:
  """Params of a batch norm with the usual decay and epsilon of ResNets."""
  return norm.BatchNorm.Params().Set(decay=0.9, epsilon=1e-5)


class ZeroStartBatchNorm(norm.BatchNorm):
  """A batch norm whose gamma starts as 0: nothing passes at first."""

  def _CreateChannels(self, name: str, value: float, **kwargs) -> None:
    super()._CreateChannels(name, 0.0 if name == 'gamma' else value, **kwargs)


def ConvNorm(
  norm_params: hyperparams.InstantiableParams,
  input_dim: int,
  output_dim: int,
  *,
  size: int = 1,
  stride: int = 1,
  relu: bool = True,
) -> hyperparams.InstantiableParams:
  """Params of a convolution without bias, batch norm and ReLU.

  A kernel larger than 1 with a stride takes `Padded` images.

  Args:
    norm_params: of the batch norm; its dim is set.
    input_dim: channels of the inputs.
    output_dim: channels of the outputs.
    size: of the kernel.
    stride: of the convolution.
    relu: whether the ReLU is there.

  Returns:
    Params of a conv_norm.ConvNorm.
  """
  return conv_norm.ConvNorm.Params().Set(
    conv=conv.Conv2D.Params().Set(
      filter_shape=(size, size, input_dim, output_dim),
      filter_stride=(stride, stride),
      padding='SAME' if stride == 1 else 'VALID',
      use_bias=False,
    ),
    norm=norm_params.Copy(),
    activation='relu' if relu else 'none',
  )


def Padded(images: tf.Tensor, size: int) -> tf.Tensor:
  """Zeros around images, as many on all sides, for a kernel of `size`.

  Where a stride of 2 meets an even size, 'SAME' would put more of them to the
  right and below; published weights of ResNets are for borders like these.

  Args:
    images: [batch, h, w, dim].
    size: of the kernel, odd.

  Returns:
    [batch, h + size - 1, w + size - 1, dim].
  """
  border = [size // 2, size // 2]
  return tf.pad(images, [[0, 0], border, border, [0, 0]])


class BottleneckBlock(base_layer.BaseLayer):
  """ReLU(inputs + 1x1 convolution of 3x3 of 1x1), He et al. (1512.03385).

  As in "v1.5", the stride is that of the 3x3 convolution, which therefore sees
  every pixel. Where size or channels change, the inputs are projected by a 1x1
  convolution. Batch norm follows each convolution.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.params_init = KernelInit()
    p.Define('input_dim', 0, 'Channels of the inputs.')
    p.Define('num_filters', 0, 'Of the first two convolutions.')
    p.Define('stride', 1, 'How many times smaller the image becomes, 1 or 2.')
    p.Define(
      'zero_start',
      False,
      'Whether the last gamma starts as 0, so that the block starts as its '
      'shortcut (Goyal et al., arXiv 1706.02677).',
    )
    p.Define('norm', DefaultNorm(), 'Decay and epsilon.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.num_filters < 1 or p.stride not in (1, 2):
      raise ValueError(
        f'{self.path}: num_filters={p.num_filters} must be 1 or more, '
        f'stride={p.stride} 1 or 2'
      )
    filters, output_dim = p.num_filters, EXPANSION * p.num_filters
    self.CreateChild('reduce', ConvNorm(p.norm, p.input_dim, filters))
    self.CreateChild(
      'conv', ConvNorm(p.norm, filters, filters, size=3, stride=p.stride)
    )
    last_norm = p.norm
    if p.zero_start:
      last_norm = ZeroStartBatchNorm.Params().Set(
        decay=p.norm.decay, epsilon=p.norm.epsilon
      )
    self.CreateChild(
      'expand', ConvNorm(last_norm, filters, output_dim, relu=False)
    )
    if p.stride != 1 or p.input_dim != output_dim:
      self.CreateChild(
        'project',
        ConvNorm(p.norm, p.input_dim, output_dim, stride=p.stride, relu=False),
      )

  def FProp(self, theta: NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the block.

    Args:
      theta: of the layers.
      inputs: [batch, h, w, input_dim].

    Returns:
      [batch, ceil(h / stride), ceil(w / stride), 4 * num_filters].
    """
    x = self.reduce.FProp(theta.reduce, inputs)
    if self.params.stride > 1:
      x = Padded(x, 3)
    x = self.conv.FProp(theta.conv, x)
    x = self.expand.FProp(theta.expand, x)
    if 'project' in theta:
      inputs = self.project.FProp(theta.project, inputs)
    return tf.nn.relu(x + inputs)
