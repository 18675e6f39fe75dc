"""The operations of AmoebaNet's cells, as layers.

R: ReLU, B: batch norm, F: output channels, s: stride

  none                       the identity; where the image's size or the number
                             of channels changes, R 1x1/s B
  conv_1x1                   R 1x1/s B
  conv_3x3                   R 1x1 B, R 3x3/s B, R 1x1 B with F/4 channels
                             between the convolutions
  conv_1x7_7x1               R 1x1 B, R 1x7/(1,s) B, R 7x1/(s,1) B, R 1x1 B,
                             with F/4 channels too
  separable_3x3_2            R separable 3x3/s B, R separable 3x3 B
  dilated_2_separable_5x5_2  the same with 5x5; there is no dilation in the
                             published implementation either
  max_pool, avg_pool         pooling/s; where channels change, 1x1 B
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import (
  conv,
  conv_norm,
  norm,
  pooling,
  sequential,
)
from tasks.image import genotypes

_Params = hyperparams.InstantiableParams


def ConvNorm(
  norm_params: _Params,
  init: hyperparams.Params,
  input_dim: int,
  output_dim: int,
  *,
  name: str = '',
  size: tuple[int, int] = (1, 1),
  stride: tuple[int, int] = (1, 1),
  relu: bool = True,
  padding: str = 'SAME',
  separable: bool = False,
) -> _Params:
  """Params of [ReLU,] convolution without bias, batch norm.

  Args:
    norm_params: of the batch norm; its dim is set.
    init: of the kernels, a WeightInit.
    input_dim: channels of the inputs.
    output_dim: channels of the outputs.
    name: of the layer; '' leaves it to the parent.
    size: of the kernel.
    stride: of the convolution.
    relu: whether a ReLU comes first.
    padding: of the convolution.
    separable: whether the convolution is a depthwise-separable one.

  Returns:
    Params of a conv_norm.ConvNorm.
  """
  cls = conv.SeparableConv2D if separable else conv.Conv2D
  return conv_norm.ConvNorm.Params().Set(
    name=name,
    pre_activation='relu' if relu else 'none',
    conv=cls.Params().Set(
      filter_shape=(*size, input_dim, output_dim),
      filter_stride=stride,
      padding=padding,
      use_bias=False,
      params_init=init,
    ),
    norm=norm_params.Copy(),
  )


class FactorizedReduction(base_layer.BaseLayer):
  """Halves an image without losing every other pixel.

  After a ReLU, one 1x1 convolution of stride 2 sees the even pixels, another
  one the odd ones; each gives half of the channels. Batch norm follows.
  """

  @classmethod
  def Params(cls) -> _Params:
    p = super().Params()
    p.Define('input_dim', 0, 'Channels of the inputs.')
    p.Define('output_dim', 0, 'Channels of the outputs.')
    p.Define('norm', norm.BatchNorm.Params(), 'Its dim is set.')
    return p

  def __init__(self, params: _Params):
    super().__init__(params)
    p = self.params
    half = p.output_dim // 2
    for name, output_dim in (('even', half), ('odd', p.output_dim - half)):
      child = conv.Conv2D.Params().Set(
        filter_shape=(1, 1, p.input_dim, output_dim),
        filter_stride=(2, 2),
        use_bias=False,
        params_init=p.params_init,
      )
      self.CreateChild(name, child)
    self.CreateChild('norm', p.norm.Copy().Set(dim=p.output_dim))

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """[batch, h, w, input_dim] -> [batch, ceil(h/2), ceil(w/2), output_dim]."""
    x = tf.nn.relu(inputs)
    shifted = tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1:, 1:, :]
    outputs = tf.concat(
      [
        self.even.FProp(theta.even, x),
        self.odd.FProp(theta.odd, shifted),
      ],
      axis=-1,
    )
    return self.norm.FProp(theta.norm, outputs)


def Operation(
  operation: str,
  input_dim: int,
  output_dim: int,
  stride: int,
  *,
  norm_params: _Params,
  init: hyperparams.Params,
) -> _Params | None:
  """Params of one operation of a cell.

  Args:
    operation: one of genotypes.OPERATIONS.
    input_dim: channels of the state it reads.
    output_dim: F, channels of what it makes.
    stride: 1 or 2.
    norm_params: of batch norms; their dim is set.
    init: of kernels, a WeightInit.

  Returns:
    Params of a layer [batch, h, w, input_dim] -> [batch, ceil(h / stride),
    ceil(w / stride), output_dim]; None for the identity.
  """

  def _ConvNorm(*args, **kwargs):
    return ConvNorm(norm_params, init, *args, **kwargs)

  if operation in _POOLS:
    return _Pool(*_POOLS[operation], input_dim, output_dim, stride, _ConvNorm)
  if operation in _SEPARABLE_SIZES:
    size = _SEPARABLE_SIZES[operation]
    return _Sequence(
      _ConvNorm(
        input_dim,
        output_dim,
        name='first',
        size=(size, size),
        stride=(stride, stride),
        separable=True,
      ),
      _ConvNorm(
        output_dim,
        output_dim,
        name='second',
        size=(size, size),
        separable=True,
      ),
    )
  if operation in _BOTTLENECKED:
    middle, sequence = output_dim // 4, []
    for size, axes in _BOTTLENECKED[operation]:
      sequence.append(
        _ConvNorm(
          middle,
          middle,
          name=f'conv_{size[0]}x{size[1]}',
          size=size,
          stride=tuple(stride if axis else 1 for axis in axes),
        )
      )
    return _Sequence(
      _ConvNorm(input_dim, middle, name='reduce'),
      *sequence,
      _ConvNorm(middle, output_dim, name='expand'),
    )
  if operation == genotypes.NONE and stride == 1 and input_dim == output_dim:
    return None
  if operation in (genotypes.NONE, genotypes.CONV_1X1):
    return _ConvNorm(input_dim, output_dim, stride=(stride, stride))
  raise ValueError(
    f'operation {operation!r} is none of {", ".join(genotypes.OPERATIONS)}'
  )


# Name to (pooling type, window).
_POOLS = {
  genotypes.MAX_POOL_2X2: ('MAX', 2),
  genotypes.MAX_POOL_3X3: ('MAX', 3),
  genotypes.AVG_POOL_3X3: ('AVG', 3),
}

_SEPARABLE_SIZES = {
  genotypes.SEPARABLE_3X3_2: 3,
  genotypes.DILATED_2_SEPARABLE_5X5_2: 5,
}

# Name to the kernels between the two 1x1, each with whether it takes the stride
# (down, to the right).
_BOTTLENECKED = {
  genotypes.CONV_3X3: [((3, 3), (True, True))],
  genotypes.CONV_1X7_7X1: [((1, 7), (False, True)), ((7, 1), (True, False))],
}


def _Sequence(*layers: _Params) -> _Params:
  return sequential.Sequential.Params().Set(layers=list(layers))


def _Pool(
  pooling_type: str,
  size: int,
  input_dim: int,
  output_dim: int,
  stride: int,
  conv_norm_fn: Callable[..., _Params],
) -> _Params:
  pool = pooling.Pooling2D.Params().Set(
    pooling_type=pooling_type,
    window_shape=(size, size),
    window_stride=(stride, stride),
  )
  if input_dim == output_dim:
    return pool
  project = conv_norm_fn(input_dim, output_dim, name='project', relu=False)
  return _Sequence(pool.Set(name='pool'), project)
