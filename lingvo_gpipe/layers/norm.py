"""Batch normalization and layer normalization.

In half precision both keep their weights, and compute their moments, in
float32.
"""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map, weights

NestedMap = nested_map.NestedMap
WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit


class _Norm(base_layer.BaseLayer):
  """What both have in common: a scale, and an offset, per channel."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('dim', 0, 'Width of the last dimension.')
    p.Define('epsilon', 1e-3, 'Added to the variance.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    self._CreateChannels('gamma', 1.0)

  def _CreateChannels(self, name: str, value: float, **kwargs) -> None:
    """Declares a weight [dim] that starts as `value`."""
    weight = WeightParams((self.params.dim,), WeightInit.Constant(value))
    self.CreateVariable(name, weight, **kwargs)

  @property
  def dtype(self) -> tf.DType:
    return weights.AtLeastFloat32(super().dtype)

  @property
  def fprop_dtype(self) -> tf.DType:
    return weights.AtLeastFloat32(super().fprop_dtype)

  def _CheckInputs(self, inputs: tf.Tensor) -> None:
    if inputs.shape[-1] != self.params.dim:
      raise ValueError(
        f'{self.path}: inputs {inputs.shape} end in {inputs.shape[-1]}, but '
        f'dim={self.params.dim}'
      )


class BatchNorm(_Norm):
  """Ioffe and Szegedy (arXiv 1502.03167), as GPipe does it (section 2.2).

  In training, inputs are normalized by the moments of their micro-batch. The
  moving moments, which evaluation uses, advance once for each mini-batch,
  towards the moments of the whole mini-batch:

    moving += (1 - decay) * (moments of the mini-batch - moving)

  To that end each micro-batch reports sums around the moving mean, which is the
  same for all of them; sums around zero would lose the variance of channels
  whose mean is large.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'decay',
      0.99,
      'Of the moving moments. They need a few times 1 / (1 - decay) steps to '
      'become useful: use 0.9 in short runs.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if not 0.0 <= p.decay < 1.0:
      raise ValueError(f'{self.path}: decay={p.decay} must be in [0, 1)')
    self._CreateChannels('beta', 0.0)
    self._CreateChannels('moving_mean', 0.0, trainable=False)
    self._CreateChannels('moving_variance', 1.0, trainable=False)

  def FProp(self, theta: NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Normalizes each channel.

    Args:
      theta: gamma, beta, moving_mean and moving_variance, each [dim].
      inputs: [batch, ..., dim].

    Returns:
      The outputs, of the inputs' shape and dtype.
    """
    self._CheckInputs(inputs)
    dtype = theta.gamma.dtype
    has_fused_kernel = inputs.shape.rank == 4 and dtype == tf.float32
    weights = None if self.do_eval else self._ValueWeights(inputs, dtype)
    if self.do_eval:
      mean = tf.cast(theta.moving_mean, dtype)
      variance = tf.cast(theta.moving_variance, dtype)
      if has_fused_kernel:
        return self._Fused(theta, inputs, mean, variance).y
      return self._Composed(theta, inputs, mean, variance)
    if weights is not None:
      mean, variance = _WeightedMoments(tf.cast(inputs, dtype), weights)
      outputs = self._Composed(theta, inputs, mean, variance)
    elif has_fused_kernel:
      empty = tf.constant([], tf.float32)
      fused = self._Fused(theta, inputs, empty, empty)
      outputs, mean = fused.y, fused.batch_mean
      # The kernel's variance is the unbiased one.
      count = self._Count(inputs)
      variance = fused.batch_variance * ((count - 1) / count)
    else:
      axes = list(range(inputs.shape.rank - 1))
      mean, variance = tf.nn.moments(tf.cast(inputs, dtype), axes)
      outputs = self._Composed(theta, inputs, mean, variance)
    self._Report(theta, inputs, mean, variance, weights)
    return outputs

  def _ValueWeights(self, inputs, dtype) -> tf.Tensor | None:
    """Of each value of a channel, [batch, ..., 1]; None: all count the same.

    Rows of the inputs may be tokens or patches of the examples, in order.
    """
    weights = self.example_weights
    if weights is None:
      return None
    rows, examples = inputs.shape[0], weights.shape[0]
    if rows is None or rows % examples:
      raise ValueError(
        f'{self.path}: inputs {inputs.shape} of a padded micro-batch of '
        f'{examples} examples: their rows belong to no example, so that '
        'padding cannot be left out'
      )
    weights = tf.repeat(tf.cast(weights, dtype), rows // examples)
    weights = tf.reshape(weights, [rows] + [1] * (inputs.shape.rank - 1))
    return tf.broadcast_to(weights, [*inputs.shape[:-1], 1])

  def _Composed(self, theta, inputs, mean, variance) -> tf.Tensor:
    outputs = tf.nn.batch_normalization(
      tf.cast(inputs, theta.gamma.dtype),
      mean,
      variance,
      theta.beta,
      theta.gamma,
      self.params.epsilon,
    )
    return tf.cast(outputs, inputs.dtype)

  def _Fused(self, theta, inputs, mean, variance):
    """One kernel, which computes the moments too if it gets none.

    On a processor it is as fast as the composed operations, on accelerators
    faster, and the graph is a fraction. (V3 of it has one output more, of a
    shape that is not known beforehand.)
    """
    return tf.raw_ops.FusedBatchNormV2(
      x=inputs,
      scale=theta.gamma,
      offset=theta.beta,
      mean=mean,
      variance=variance,
      epsilon=self.params.epsilon,
      is_training=mean.shape[0] == 0,
    )

  def _Count(self, inputs) -> int | tf.Tensor:
    """How many values each channel has."""
    if inputs.shape.is_fully_defined():
      return inputs.shape.num_elements() // self.params.dim
    return tf.cast(tf.size(inputs) // self.params.dim, tf.float32)

  def _Report(self, theta, inputs, mean, variance, weights) -> None:
    count = self._Count(inputs) if weights is None else tf.reduce_sum(weights)
    count = tf.cast(count, mean.dtype)
    shifted = mean - tf.cast(theta.moving_mean, mean.dtype)
    moments = [tf.ones_like(mean), shifted, variance + tf.square(shifted)]
    self.ReportStatistics(NestedMap(sums=count * tf.stack(moments)))

  def ApplyStatistics(self, statistics: NestedMap) -> None:
    """Advances the moving moments.

    Args:
      statistics: sums [3, dim] over the mini-batch of 1, of the values less the
        moving mean, and of the squares of that.
    """
    count, total, squares = tf.unstack(
      tf.cast(statistics.sums, self.vars.moving_mean.dtype)
    )
    shifted = total / count
    variance = tf.nn.relu(squares / count - tf.square(shifted))
    rate = 1.0 - self.params.decay
    self.vars.moving_mean.assign_add(rate * shifted)
    self.vars.moving_variance.assign_add(
      rate * (variance - self.vars.moving_variance)
    )


def _WeightedMoments(
  inputs: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Mean and variance of each channel; 0 where nothing has any weight."""
  axes = list(range(inputs.shape.rank - 1))
  count = tf.reduce_sum(weights)
  mean = tf.math.divide_no_nan(tf.reduce_sum(weights * inputs, axes), count)
  squares = weights * tf.square(inputs - mean)
  return mean, tf.math.divide_no_nan(tf.reduce_sum(squares, axes), count)


class LayerNorm(_Norm):
  """Normalizes each vector of the last dimension (arXiv 1607.06450)."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.epsilon = 1e-6
    p.Define('use_bias', True, 'Whether beta is added.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.use_bias:
      self._CreateChannels('beta', 0.0)

  def FProp(self, theta: NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Normalizes each vector.

    Args:
      theta: gamma and, with use_bias, beta, each [dim].
      inputs: [..., dim].

    Returns:
      The outputs, of the inputs' shape and dtype.
    """
    self._CheckInputs(inputs)
    weights = [theta.gamma, theta.beta] if 'beta' in theta else [theta.gamma]
    return _NormalizeVectors(inputs, weights, self.params.epsilon)


def _NormalizeVectors(
  inputs: tf.Tensor, weights: list[tf.Tensor], epsilon: float
) -> tf.Tensor:
  """LayerNorm with its gradient written out, half as long as a derived one.

  Args:
    inputs: [..., dim].
    weights: gamma, or gamma and beta.
    epsilon: added to the variance.

  Returns:
    The outputs, of the inputs' shape and dtype.
  """

  # What has a gradient is an argument: custom_gradient sees nothing else.
  @tf.custom_gradient
  def _Normalize(inputs, gamma, *beta):
    x = tf.cast(inputs, gamma.dtype)
    centered = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), -1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    normed = centered * inverse

    def _Gradient(dy):
      dy = tf.cast(dy, gamma.dtype)
      slopes = dy * gamma
      dx = inverse * (
        slopes
        - tf.reduce_mean(slopes, -1, keepdims=True)
        - normed * tf.reduce_mean(slopes * normed, -1, keepdims=True)
      )
      rows = list(range(inputs.shape.rank - 1))
      dgamma = tf.reduce_sum(dy * normed, rows)
      dbeta = [tf.reduce_sum(dy, rows) for _ in beta]
      return tf.cast(dx, inputs.dtype), dgamma, *dbeta

    outputs = normed * gamma
    if beta:
      outputs += beta[0]
    return tf.cast(outputs, inputs.dtype), _Gradient

  return _Normalize(inputs, *weights)
