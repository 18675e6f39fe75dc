"""The fully connected layer."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import activation

WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit


class Dense(base_layer.BaseLayer):
  """activation(x w + b) over the last dimension."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('input_dim', 0, 'Width of the inputs.')
    p.Define('output_dim', 0, 'Width of the outputs.')
    p.Define('use_bias', True, 'Whether b is added.')
    p.Define('activation', 'none', 'A name of layers/activation.py.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    activation.Check(p.activation, self.path)
    self.CreateVariable(
      'w', WeightParams((p.input_dim, p.output_dim), collections=('l2',))
    )
    if p.use_bias:
      self.CreateVariable(
        'b', WeightParams((p.output_dim,), WeightInit.Constant(0.0))
      )

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer.

    Args:
      theta: w [input_dim, output_dim] and b [output_dim].
      inputs: [..., input_dim].

    Returns:
      [..., output_dim].
    """
    p = self.params
    if inputs.shape[-1] != p.input_dim:
      raise ValueError(
        f'{self.path}: inputs {inputs.shape} end in {inputs.shape[-1]}, but '
        f'input_dim={p.input_dim}'
      )
    rows = inputs if inputs.shape.rank == 2 else _Rows(inputs)
    outputs = tf.matmul(rows, theta.w)
    if p.use_bias:
      outputs = tf.nn.bias_add(outputs, theta.b)
    outputs = activation.Apply(p.activation, outputs)
    if inputs.shape.rank != 2:
      outputs = tf.reshape(outputs, [*_Shape(inputs)[:-1], p.output_dim])
    return outputs


def _Rows(inputs: tf.Tensor) -> tf.Tensor:
  """[..., dim] -> [rows, dim]: one large product instead of many."""
  return tf.reshape(inputs, [-1, inputs.shape[-1]])


def _Shape(inputs: tf.Tensor) -> list:
  """The static sizes, where they are known, else the sizes at run time."""
  if inputs.shape.is_fully_defined():
    return inputs.shape.as_list()
  sizes = tf.shape(inputs)
  return [
    sizes[i] if size is None else size for i, size in enumerate(inputs.shape)
  ]
