"""Two-dimensional convolutions over images [batch, height, width, channels]."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import activation

WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit


class _Conv(base_layer.BaseLayer):
  """What the convolutions have in common."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'filter_shape',
      (0, 0, 0, 0),
      '(height, width, input channels, output channels).',
    )
    p.Define('filter_stride', (1, 1), 'Steps down and to the right.')
    p.Define('padding', 'SAME', "'SAME' or 'VALID'.")
    p.Define('use_bias', True, 'Whether b is added.')
    p.Define('activation', 'none', 'A name of layers/activation.py.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    activation.Check(p.activation, self.path)
    if len(p.filter_shape) != 4:
      raise ValueError(
        f'{self.path}: filter_shape={p.filter_shape!r} must be four integers: '
        'height, width, input channels, output channels'
      )
    CheckPadding(p.padding, self.path)
    CheckPair('filter_stride', p.filter_stride, self.path)

  def _CreateBias(self, size: int) -> None:
    if self.params.use_bias:
      self.CreateVariable('b', WeightParams((size,), WeightInit.Constant(0.0)))

  def _CheckInputs(self, inputs: tf.Tensor, channels: int) -> None:
    if inputs.shape.rank != 4 or inputs.shape[-1] != channels:
      raise ValueError(
        f'{self.path}: inputs have shape {inputs.shape}; it takes [batch, '
        f'height, width, {channels}]'
      )

  def _Finish(
    self, theta: nested_map.NestedMap, outputs: tf.Tensor
  ) -> tf.Tensor:
    if self.params.use_bias:
      outputs = tf.nn.bias_add(outputs, theta.b)
    return activation.Apply(self.params.activation, outputs)


class Conv2D(_Conv):
  """activation(x * w + b)."""

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    shape = tuple(self.params.filter_shape)
    self.CreateVariable('w', WeightParams(shape, collections=('l2',)))
    self._CreateBias(shape[3])

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer.

    Args:
      theta: w, of filter_shape, and b [output channels].
      inputs: [batch, height, width, input channels].

    Returns:
      [batch, new height, new width, output channels].
    """
    p = self.params
    self._CheckInputs(inputs, p.filter_shape[2])
    outputs = tf.nn.conv2d(inputs, theta.w, list(p.filter_stride), p.padding)
    return self._Finish(theta, outputs)


class SeparableConv2D(_Conv):
  """A convolution within each channel, then a 1x1 one across channels.

  Nothing stands between the two; the bias and the activation come last. Chollet
  (arXiv 1610.02357).
  """

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    height, width, channels, output_dim = p.filter_shape
    if p.filter_stride[0] != p.filter_stride[1]:
      raise ValueError(
        f'{self.path}: filter_stride={tuple(p.filter_stride)} must be the same '
        'in both directions'
      )
    self.CreateVariable(
      'depthwise',
      WeightParams((height, width, channels, 1), collections=('l2',)),
    )
    self.CreateVariable(
      'pointwise',
      WeightParams((1, 1, channels, output_dim), collections=('l2',)),
    )
    self._CreateBias(output_dim)

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer.

    Args:
      theta: depthwise [height, width, input channels, 1], pointwise [1, 1,
        input channels, output channels] and b [output channels].
      inputs: [batch, height, width, input channels].

    Returns:
      [batch, new height, new width, output channels].
    """
    p = self.params
    self._CheckInputs(inputs, p.filter_shape[2])
    outputs = tf.nn.depthwise_conv2d(
      inputs, theta.depthwise, [1, *p.filter_stride, 1], p.padding
    )
    outputs = tf.nn.conv2d(outputs, theta.pointwise, 1, 'VALID')
    return self._Finish(theta, outputs)


def CheckPadding(padding: str, path: str) -> None:
  """Raises ValueError unless `padding` is 'SAME' or 'VALID'."""
  if padding not in ('SAME', 'VALID'):
    raise ValueError(
      f"{path}: padding={padding!r} is neither 'SAME' nor 'VALID'"
    )


def CheckPair(name: str, value: tuple[int, int], path: str) -> None:
  """Raises ValueError unless `value` is two positive integers."""
  if len(value) != 2 or any(not isinstance(v, int) or v < 1 for v in value):
    raise ValueError(
      f'{path}: {name}={value!r} must be two positive integers, (down, right)'
    )
