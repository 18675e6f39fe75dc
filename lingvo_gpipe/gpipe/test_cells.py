"""Small cells that use every freedom a cell has, for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, metrics, nested_map

NestedMap = nested_map.NestedMap
WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit


@contextlib.contextmanager
def NoGraphOptimizer() -> Iterator[None]:
  """Without it: it rewrites sums, which changes last bits."""
  options = tf.config.optimizer.set_experimental_options
  options({'disable_meta_optimizer': True})
  try:
    yield
  finally:
    options({'disable_meta_optimizer': False})


class Linear(base_layer.BaseLayer):
  """tanh(x w + b), optionally followed by dropout."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('input_dim', 0, 'Width of the input.')
    p.Define('output_dim', 0, 'Width of the output.')
    p.Define('keep_prob', 1.0, 'Of dropout.')
    return p

  def __init__(self, params):
    super().__init__(params)
    p = self.params
    self.CreateVariable('w', WeightParams((p.input_dim, p.output_dim)))
    self.CreateVariable(
      'b', WeightParams((p.output_dim,), WeightInit.Constant(0.1))
    )

  def Apply(self, theta, x):
    """[batch, input_dim] -> [batch, output_dim]."""
    p = self.params
    y = tf.tanh(x @ theta.w + theta.b)
    if p.keep_prob < 1.0 and not self.do_eval:
      draw = tf.random.stateless_uniform(
        y.shape, self.StatelessSeed(), alg='philox'
      )
      mask = tf.cast(draw < p.keep_prob, y.dtype) / p.keep_prob
      y *= mask
    return y

  def FProp(self, theta, inputs):
    return self.Apply(theta, inputs)


class Norm(base_layer.BaseLayer):
  """Batch norm over [batch, dim] by its definition, for tests."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('dim', 0, 'Width.')
    return p

  def __init__(self, params):
    super().__init__(params)
    shape = (self.params.dim,)
    self.CreateVariable('gamma', WeightParams(shape, WeightInit.Constant(1.0)))
    self.CreateVariable(
      'mean', WeightParams(shape, WeightInit.Constant(0.0)), trainable=False
    )

  def FProp(self, theta, inputs):
    if self.do_eval:
      return (inputs - theta.mean) * theta.gamma
    mean, variance = tf.nn.moments(inputs, [0])
    self.ReportStatistics(
      NestedMap(
        count=tf.cast(tf.shape(inputs)[0], inputs.dtype),
        total=tf.reduce_sum(inputs, 0),
      )
    )
    return (inputs - mean) * tf.math.rsqrt(variance + 1e-3) * theta.gamma

  def ApplyStatistics(self, statistics):
    mean = statistics.total / statistics.count
    self.vars.mean.assign(0.9 * self.vars.mean + 0.1 * mean)


class Fork(Linear):
  """x -> NestedMap(x, skip, ids, nothing): several tensors, an int and None."""

  def FProp(self, theta, inputs):
    ids = tf.cast(inputs[:, 0] > 0, tf.int32)
    return NestedMap(
      x=self.Apply(theta, inputs), skip=inputs, ids=ids, nothing=None
    )


class Carry(Linear):
  """Changes x of what Fork made, lets the rest pass; adds an auxiliary loss."""

  def FProp(self, theta, inputs):
    outputs = inputs.copy()
    outputs.x = self.Apply(theta, inputs.x)
    self.AddAuxLoss('size', 0.01 * tf.reduce_sum(tf.square(outputs.x)))
    return outputs


class Join(Linear):
  """x + skip, scaled by a function of the ids."""

  def FProp(self, theta, inputs):
    scale = 1.0 + tf.cast(inputs.ids, inputs.x.dtype)[:, tf.newaxis]
    assert inputs.nothing is None
    return self.Apply(theta, inputs.x + inputs.skip) * scale


class Head(Linear):
  """Squared error against the batch's labels, weighted by example."""

  BATCH_FIELDS = ('labels', 'weights')

  def FProp(self, theta, inputs, batch):
    predictions = tf.squeeze(self.Apply(theta, inputs), -1)
    errors = tf.square(predictions - tf.cast(batch.labels, predictions.dtype))
    return NestedMap(
      loss=metrics.Weighted(errors, batch.weights),
      absolute=metrics.Weighted(tf.sqrt(errors), batch.weights),
      predictions=predictions,
    )


def Cells(dim: int = 4, keep_prob: float = 1.0) -> list[Any]:
  """Six cells: Linear, Norm, Fork, Carry, Join, Head."""

  def _Dense(cls, name, output_dim=dim, keep=keep_prob):
    return cls.Params().Set(
      name=name, input_dim=dim, output_dim=output_dim, keep_prob=keep
    )

  return [
    _Dense(Linear, 'linear'),
    Norm.Params().Set(name='norm', dim=dim),
    _Dense(Fork, 'fork'),
    _Dense(Carry, 'carry'),
    _Dense(Join, 'join'),
    _Dense(Head, 'head', output_dim=1, keep=1.0),
  ]


def Batch(batch_size: int = 24, dim: int = 4, dtype=tf.float64) -> NestedMap:
  """A fixed mini-batch with unequal weights, one of them zero."""
  draw = tf.random.stateless_normal
  return NestedMap(
    inputs=draw([batch_size, dim], (1, 2), dtype=dtype),
    labels=draw([batch_size], (3, 4), dtype=dtype),
    weights=tf.cast(tf.range(batch_size) % 3, dtype),
  )
