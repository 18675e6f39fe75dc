"""The model that all tools measure: Transformer blocks and a squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_layer, metrics, nested_map, user_error
from tools.benchmarks import stack_sizes

NestedMap = nested_map.NestedMap
WeightParams = base_layer.WeightParams
WeightInit = base_layer.WeightInit

_EPSILON = 1e-6
# float32 sums in other orders.
_LOSS_TOLERANCE = 1e-4


@tf.custom_gradient
def LayerNorm(x, scale):
  mean = tf.reduce_mean(x, -1, keepdims=True)
  centered = x - mean
  inverse = tf.math.rsqrt(
    tf.reduce_mean(tf.square(centered), -1, keepdims=True) + _EPSILON
  )
  normed = centered * inverse

  def _Gradient(dy):
    dn = dy * scale
    dx = inverse * (
      dn
      - tf.reduce_mean(dn, -1, keepdims=True)
      - normed * tf.reduce_mean(dn * normed, -1, keepdims=True)
    )
    return dx, tf.reduce_sum(dy * normed, [0, 1])

  return normed * scale, _Gradient


class Block(base_layer.BaseLayer):
  """A pre-norm Transformer block without biases."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('model_dim', 0, 'Width of inputs and outputs.')
    p.Define('ffn_dim', 0, 'Width of the hidden layer.')
    p.Define('heads', 1, 'Of attention.')
    return p

  def __init__(self, params):
    super().__init__(params)
    p = self.params
    d = p.model_dim
    for name, shape in (
      ('qkv', (d, 3 * d)),
      ('post', (d, d)),
      ('hidden', (d, p.ffn_dim)),
      ('output', (p.ffn_dim, d)),
    ):
      self.CreateVariable(name, WeightParams(shape))
    for name in ('attention_scale', 'ffn_scale'):
      self.CreateVariable(name, WeightParams((d,), WeightInit.Constant(1.0)))

  def FProp(self, theta, inputs):
    """[batch, tokens, model_dim] -> the same."""
    p = self.params
    batch, tokens, d = inputs.shape
    rows = [batch * tokens, d]
    x = tf.reshape(LayerNorm(inputs, theta.attention_scale), rows)
    qkv = tf.reshape(x @ theta.qkv, [batch, tokens, 3, p.heads, d // p.heads])
    q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
    q *= (d // p.heads) ** -0.5
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
    x = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), rows)
    x = inputs + tf.reshape(x @ theta.post, inputs.shape)
    y = tf.reshape(LayerNorm(x, theta.ffn_scale), rows)
    y = tf.nn.relu(y @ theta.hidden) @ theta.output
    return x + tf.reshape(y, inputs.shape)


class MeanSquaredError(base_layer.BaseLayer):
  """The mean of (inputs - labels)^2."""

  BATCH_FIELDS = ('labels',)

  def FProp(self, theta, inputs, batch):
    errors = tf.reduce_mean(tf.square(inputs - batch.labels), [1, 2])
    return NestedMap(loss=metrics.Weighted(errors, tf.ones_like(errors)))


def Cells(sizes: stack_sizes.Sizes) -> list[Any]:
  """Params of the blocks, and of the loss as the last cell."""
  blocks = [
    Block.Params().Set(
      name=f'block_{i}',
      model_dim=sizes.model_dim,
      ffn_dim=sizes.ffn_dim,
      heads=sizes.heads,
    )
    for i in range(sizes.layers)
  ]
  return [*blocks, MeanSquaredError.Params().Set(name='loss')]


def BatchArrays(sizes: stack_sizes.Sizes) -> dict[str, np.ndarray]:
  """A fixed mini-batch, normally distributed.

  Args:
    sizes: of the stack.

  Returns:
    float32 `inputs` and `labels` [batch, tokens, model_dim].
  """
  draw = np.random.default_rng(1)
  shape = [sizes.batch, sizes.tokens, sizes.model_dim]
  return {
    name: draw.standard_normal(shape, np.float32)
    for name in ('inputs', 'labels')
  }


def WeightArrays(sizes: stack_sizes.Sizes) -> dict[str, np.ndarray]:
  """Fixed initial weights, for programs that are to start from the same ones.

  Args:
    sizes: of the stack.

  Returns:
    float32 arrays by name, `block_<i>/<weight>`.
  """
  draw = np.random.default_rng(2)
  d, f = sizes.model_dim, sizes.ffn_dim
  arrays = {}
  for i in range(sizes.layers):
    for name, shape in (
      ('qkv', (d, 3 * d)),
      ('post', (d, d)),
      ('hidden', (d, f)),
      ('output', (f, d)),
    ):
      values = draw.standard_normal(shape, np.float32)
      arrays[f'block_{i}/{name}'] = values * np.float32(shape[0] ** -0.5)
    for name in ('attention_scale', 'ffn_scale'):
      arrays[f'block_{i}/{name}'] = np.ones([d], np.float32)
  return arrays


def Batch(sizes: stack_sizes.Sizes) -> NestedMap:
  """The mini-batch of BatchArrays as tensors."""
  return NestedMap(
    {name: tf.constant(x) for name, x in BatchArrays(sizes).items()}
  )


def BatchSpec(sizes: stack_sizes.Sizes) -> NestedMap:
  """TensorSpecs of the mini-batch."""
  spec = tf.TensorSpec([sizes.batch, sizes.tokens, sizes.model_dim], tf.float32)
  return NestedMap(inputs=spec, labels=spec)


def AssignWeights(
  cells: list[NestedMap], arrays: Mapping[str, np.ndarray]
) -> None:
  """Gives the cells' variables the values of WeightArrays."""
  for i, block in enumerate(cells[:-1]):
    for name, variable in block.items():
      variable.assign(arrays[f'block_{i}/{name}'])


def CheckLosses(losses: Mapping[str, float]) -> None:
  """Verifies that all have trained the same model for as many steps.

  Args:
    losses: of the last step, by name.

  Raises:
    TrainingError: where one differs from the first.
  """
  first, expected = next(iter(losses.items()))
  for name, loss in losses.items():
    if not abs(loss - expected) <= _LOSS_TOLERANCE * abs(expected):
      raise user_error.TrainingError(
        f'{name} has the loss {loss:.6f} after the last step, but {first} has '
        f'{expected:.6f}: they do not train the same model'
      )
