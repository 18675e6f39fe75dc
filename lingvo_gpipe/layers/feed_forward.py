"""The feed-forward network of a Transformer block."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import activation, dense, dropout, scaled_init


class FeedForward(base_layer.BaseLayer):
  """activation(x w1 + b1) w2 + b2 over the last dimension.

  Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.3.
  Dropout, in training, is that of the hidden layer.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('dim', 0, 'Width of inputs and outputs.')
    p.Define('hidden_dim', 0, 'Width of the hidden layer.')
    p.Define('activation', 'relu', 'A name of layers/activation.py.')
    p.Define('use_bias', True, 'Whether the biases b1 and b2 are added.')
    p.Define(
      'keep_prob', 1.0, 'Dropout of the hidden layer: how likely a value stays.'
    )
    p.Define(
      'output_init_scale',
      1.0,
      'w2 starts this many times as large; see scaled_init.py.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('dim', 'hidden_dim'):
      if p.Get(name) < 1:
        raise ValueError(f'{self.path}: {name}={p.Get(name)} must be 1 or more')
    activation.Check(p.activation, self.path)
    layer = dense.Dense.Params().Set(use_bias=p.use_bias)
    self.CreateChild(
      'hidden',
      layer.Copy().Set(
        input_dim=p.dim, output_dim=p.hidden_dim, activation=p.activation
      ),
    )
    output = layer.Set(input_dim=p.hidden_dim, output_dim=p.dim)
    if p.output_init_scale != 1.0:
      output.params_init = scaled_init.ScaledInit(
        self.params_init, p.output_init_scale
      )
    self.CreateChild('output', output)
    drop = dropout.Dropout.Params().Set(keep_prob=p.keep_prob)
    self.CreateChild('dropout', drop)

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer.

    Args:
      theta: hidden and output, each w and, with use_bias, b.
      inputs: [..., dim].

    Returns:
      The outputs, of the inputs' shape.

    Raises:
      ValueError: for inputs of another width.
    """
    p = self.params
    if inputs.shape[-1] != p.dim:
      raise ValueError(
        f'{self.path}: inputs {inputs.shape} end in {inputs.shape[-1]}, but '
        f'dim={p.dim}'
      )
    static = inputs.shape.is_fully_defined()
    shape = inputs.shape if static else tf.shape(inputs)
    # Rows once for both products, instead of there and back for each.
    x = tf.reshape(inputs, [-1, p.dim])
    x = self.hidden.FProp(theta.hidden, x)
    x = self.dropout.FProp(theta.dropout, x)
    return tf.reshape(self.output.FProp(theta.output, x), shape)
