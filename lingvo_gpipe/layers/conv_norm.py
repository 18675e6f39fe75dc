"""Convolution and batch norm with the activation in front or behind."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import activation, conv, norm


class ConvNorm(base_layer.BaseLayer):
  """activation(norm(conv(pre_activation(inputs))))."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('pre_activation', 'none', 'Before the convolution.')
    p.Define(
      'conv', conv.Conv2D.Params().Set(use_bias=False), 'The convolution.'
    )
    p.Define('norm', norm.BatchNorm.Params(), 'Its dim follows from conv.')
    p.Define('activation', 'none', 'After the batch norm.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    activation.Check(p.pre_activation, self.path)
    activation.Check(p.activation, self.path)
    self.CreateChild('conv', p.conv)
    self.CreateChild('norm', p.norm.Copy().Set(dim=p.conv.filter_shape[3]))

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """[batch, h, w, dim] -> [batch, new h, new w, output channels]."""
    p = self.params
    x = activation.Apply(p.pre_activation, inputs)
    x = self.conv.FProp(theta.conv, x)
    x = self.norm.FProp(theta.norm, x)
    return activation.Apply(p.activation, x)
