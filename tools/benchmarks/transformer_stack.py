"""The model that all tools measure: Transformer blocks and a squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_layer, metrics, nested_map, user_error
from lingvo_gpipe.layers import transformer
from tools.benchmarks import stack_sizes

NestedMap = nested_map.NestedMap

# Where the weights of WeightArrays are in a block.
_PATHS = {
  'qkv': 'attention.qkv.w',
  'post': 'attention.post.w',
  'hidden': 'feed_forward.hidden.w',
  'output': 'feed_forward.output.w',
  'attention_scale': 'attention_norm.gamma',
  'ffn_scale': 'feed_forward_norm.gamma',
}
# float32 sums in other orders.
_LOSS_TOLERANCE = 1e-5


class MeanSquaredError(base_layer.BaseLayer):
  """The mean of (inputs - labels)^2."""

  BATCH_FIELDS = ('labels',)

  def FProp(self, theta, inputs, batch):
    errors = tf.reduce_mean(tf.square(inputs - batch.labels), [1, 2])
    return NestedMap(loss=metrics.Weighted(errors, tf.ones_like(errors)))


def Cells(sizes: stack_sizes.Sizes) -> list[Any]:
  """Params of the blocks, and of the loss as the last cell."""
  blocks = [
    transformer.TransformerBlock.Params().Set(
      name=f'block_{i}',
      dim=sizes.model_dim,
      hidden_dim=sizes.ffn_dim,
      num_heads=sizes.heads,
      use_bias=False,
      norm_use_bias=False,
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
    for name, path in _PATHS.items():
      block.GetItem(path).assign(arrays[f'block_{i}/{name}'])


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
