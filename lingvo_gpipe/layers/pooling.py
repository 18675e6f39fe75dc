"""Pooling over images [batch, height, width, channels]."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import conv


class Pooling2D(base_layer.BaseLayer):
  """The largest value or the mean of each window.

  Means leave out the padding of 'SAME': an average at the border is one of
  fewer values.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('pooling_type', 'MAX', "'MAX' or 'AVG'.")
    p.Define('window_shape', (2, 2), '(height, width).')
    p.Define('window_stride', (1, 1), 'Steps down and to the right.')
    p.Define('padding', 'SAME', "'SAME' or 'VALID'.")
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.pooling_type not in ('MAX', 'AVG'):
      raise ValueError(
        f"{self.path}: pooling_type={p.pooling_type!r} is neither 'MAX' nor "
        "'AVG'"
      )
    conv.CheckPadding(p.padding, self.path)
    conv.CheckPair('window_shape', p.window_shape, self.path)
    conv.CheckPair('window_stride', p.window_stride, self.path)

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """[batch, height, width, dim] -> [batch, new height, new width, dim]."""
    p = self.params
    pool = tf.nn.max_pool2d if p.pooling_type == 'MAX' else tf.nn.avg_pool2d
    return pool(inputs, list(p.window_shape), list(p.window_stride), p.padding)


def GlobalAverage(inputs: tf.Tensor) -> tf.Tensor:
  """The mean over height and width: [batch, h, w, dim] -> [batch, dim]."""
  return tf.reduce_mean(inputs, axis=[1, 2])
